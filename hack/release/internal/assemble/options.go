// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/plumbline-dev/plumbline/hack/release/internal/bill"
	"github.com/plumbline-dev/plumbline/hack/release/internal/chart"
	"github.com/plumbline-dev/plumbline/hack/release/internal/compile"
	"github.com/plumbline-dev/plumbline/hack/release/internal/oci"
	"github.com/plumbline-dev/plumbline/hack/release/internal/source"
)

// Options say what is released and with what.
type Options struct {
	Version source.Version
	Commit  source.Commit
	// Root is the repository, Dist the folder in which the release's own folder is made.
	Root, Dist string
	// Registry is where the chart pulls images from. Without an address it is
	// [chart.DefaultRegistry], and nothing can be pushed.
	Registry oci.Registry
	// Downloads is the address below which people find the archives of the plugin.
	Downloads string
	// Builder is who makes the release, as a URI; Go and Helm are the versions of both.
	Builder   string
	GoVersion string
	Helm      chart.Helm
	// Key signs the provenance; nil leaves it unsigned.
	Key ed25519.PrivateKey
	// Upstream are the images of other projects that the chart pulls.
	Upstream []chart.Upstream
	// Compile writes the commands of a platform to their places, see [compile.Binary].
	Compile func(ctx context.Context, p compile.Platform, folder string, commands ...string) error
	// Packages lists the folders of the packages that the commands of a platform are
	// compiled from, by module.
	Packages func(ctx context.Context, p compile.Platform, commands ...string) (map[string][]string, error)
	Cache    bill.Cache
	// Progress is told each step.
	Progress io.Writer
}

// Release is one that was made.
type Release struct {
	// Folder holds all of it.
	Folder string
	// Images by name.
	Images map[string]v1.ImageIndex
	// Chart is the file of the chart.
	Chart string
}

func (o *Options) registry() string {
	if o.Registry.Address == "" {
		return chart.DefaultRegistry
	}
	return o.Registry.Address
}

func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.Progress, "release: "+format+"\n", args...)
}

// run is a release that is being made: work is thrown away, staging becomes the release.
type run struct {
	*Options
	work, staging string
	license       []byte
	// bills are those of each binary, by its file.
	bills    map[string][]bill.License
	release  Release
	subjects []subject
}

// subject is an image of the release, for its provenance.
type subject struct{ reference, digest string }

// Make builds the release.
func Make(ctx context.Context, options Options) (*Release, error) {
	final := filepath.Join(options.Dist, options.Version.String())
	if err := os.MkdirAll(options.Dist, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of releases: %w", err)
	}
	staging, err := os.MkdirTemp(options.Dist, "."+options.Version.String()+".")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the release: %w", err)
	}
	defer func() { _ = os.RemoveAll(staging) }() // renamed, or of no use
	work, err := os.MkdirTemp("", "plumbline-release-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for binaries: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := &run{Options: &options, work: work, staging: staging, release: Release{Images: map[string]v1.ImageIndex{}}}
	if r.license, err = os.ReadFile(filepath.Join(options.Root, "LICENSE")); err != nil {
		return nil, fmt.Errorf("reading the license: %w", err)
	}
	for _, step := range []func(context.Context) error{r.compile, r.readBills, r.buildImages, r.packPlugin, r.writeBills, r.packChart, r.seal} {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("making the release: %w", err)
		}
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := publish(staging, final); err != nil {
		return nil, err
	}
	r.release.Folder = final
	r.release.Chart = filepath.Join(final, "charts", filepath.Base(r.release.Chart))
	return &r.release, nil
}

// publish gives the folder its name. A release of the same version gives way.
func publish(staging, final string) error {
	if err := os.Chmod(staging, 0o755); err != nil { //nolint:gosec // a release is public
		return fmt.Errorf("publishing %s: %w", final, err)
	}
	if err := os.RemoveAll(final); err != nil {
		return fmt.Errorf("removing the release of before: %w", err)
	}
	if err := os.Rename(staging, final); err != nil {
		return fmt.Errorf("publishing %s: %w", final, err)
	}
	return nil
}

// write puts a file into the release.
func (r *run) write(name string, content []byte) error {
	path := filepath.Join(r.staging, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // a release is public
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
