// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-dev/plumbline/hack/release/internal/archive"
	"github.com/plumbline-dev/plumbline/hack/release/internal/chart"
	"github.com/plumbline-dev/plumbline/hack/release/internal/compile"
	"github.com/plumbline-dev/plumbline/hack/release/internal/provenance"
)

func (r *run) packChart(ctx context.Context) error {
	r.say("packing the chart")
	release := chart.Release{
		Version: r.Version.Chart(), AppVersion: r.Version.String(), Registry: r.registry(), Prerelease: r.Version.IsPrerelease(),
		Upstream: r.Upstream, License: r.license,
	}
	for _, name := range compile.Images() {
		one := chart.Image{Name: name, Reference: release.Registry + "/" + name + ":" + release.AppVersion}
		for _, p := range compile.ImagePlatforms() {
			one.Platforms = append(one.Platforms, p.String())
		}
		release.Images = append(release.Images, one)
	}
	staged := filepath.Join(r.work, "plumbline")
	if err := chart.Stage(filepath.Join(r.Root, "charts", "plumbline"), staged, release); err != nil {
		return err
	}
	folder := filepath.Join(r.staging, "charts")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("creating the folder of the chart: %w", err)
	}
	file, err := r.Helm.Package(ctx, staged, folder, release, r.Commit.Time)
	r.release.Chart = file
	return err
}

// seal writes the checksums of all that is there, and the provenance of all of that.
func (r *run) seal(ctx context.Context) error {
	sums, err := archive.Checksums(r.staging)
	if err != nil {
		return err
	}
	text := archive.FormatChecksums(sums)
	if err := r.write("SHA256SUMS", text); err != nil {
		return err
	}
	subjects := []provenance.Subject{{Name: "SHA256SUMS", SHA256: hexSum(text)}}
	for _, image := range r.subjects {
		subjects = append(subjects, provenance.Subject{Name: image.reference, SHA256: image.digest})
	}
	for _, sum := range sums {
		if filepath.Dir(filepath.FromSlash(sum.Name)) == "plugin" || filepath.Dir(filepath.FromSlash(sum.Name)) == "charts" {
			subjects = append(subjects, provenance.Subject(sum))
		}
	}
	helm, err := r.Helm.Version(ctx)
	if err != nil {
		return err
	}
	statement, err := provenance.Statement(provenance.Build{
		Version: r.Version.String(), Registry: r.registry(), Commit: r.Commit.Hash, Dirty: r.Commit.Dirty,
		Builder: r.Builder, GoVersion: r.GoVersion, Helm: helm,
	}, subjects)
	if err != nil {
		return err
	}
	if r.Key == nil {
		r.say("the provenance is unsigned: KEY=… signs it")
		return r.write("provenance.intoto.json", statement)
	}
	signed, err := provenance.Sign(ctx, statement, r.Key)
	if err != nil {
		return err
	}
	return r.write("provenance.intoto.dsse.json", signed)
}
