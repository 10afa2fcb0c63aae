// SPDX-License-Identifier: Apache-2.0

package assemble

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
	"github.com/plumbline-dev/plumbline/hack/release/internal/archive"
	"github.com/plumbline-dev/plumbline/hack/release/internal/bill"
	"github.com/plumbline-dev/plumbline/hack/release/internal/compile"
	"github.com/plumbline-dev/plumbline/hack/release/internal/oci"
)

func (r *run) compile(ctx context.Context) error {
	for _, p := range compile.PluginPlatforms() {
		r.say("compiling for %s", p)
		if err := r.Compile(ctx, p, r.work, compile.Commands(p)...); err != nil {
			return err
		}
	}
	return nil
}

// readBills reads the modules of each binary, and their licenses.
func (r *run) readBills(ctx context.Context) error {
	r.say("reading modules and licenses")
	r.bills = map[string][]bill.License{}
	for _, p := range compile.PluginPlatforms() {
		packages, err := r.Packages(ctx, p, compile.Commands(p)...)
		if err != nil {
			return err
		}
		for _, command := range compile.Commands(p) {
			binary := compile.Binary(r.work, p, command)
			modules, err := bill.ReadModules(binary)
			if err != nil {
				return err
			}
			if r.bills[binary], err = r.Cache.Licenses(modules, packages); err != nil {
				return fmt.Errorf("checking the licenses in %s for %s: %w", command, p, err)
			}
		}
	}
	return nil
}

func (r *run) buildImages(context.Context) error {
	var architectures []string
	for _, p := range compile.ImagePlatforms() {
		architectures = append(architectures, p.Architecture)
	}
	var list strings.Builder
	for _, name := range compile.Images() {
		r.say("building the image %s", name)
		program := oci.Program{Name: name, Binaries: map[string]string{}, Version: r.Version.String(), Revision: r.Commit.Hash, Created: r.Commit.Time}
		for _, p := range compile.ImagePlatforms() {
			program.Binaries[p.Architecture] = compile.Binary(r.work, p, name)
		}
		program.Licenses = []image.Entry{
			{Path: "/licenses/LICENSE", Data: r.license},
			{Path: "/licenses/THIRD-PARTY", Data: bill.FormatLicenses(r.licensesOf(name, compile.ImagePlatforms()))},
		}
		index, err := oci.Build(program, architectures)
		if err != nil {
			return err
		}
		digest, err := index.Digest()
		if err != nil {
			return fmt.Errorf("computing the digest of the image %s: %w", name, err)
		}
		if err := writeLayout(filepath.Join(r.staging, "images", name), index); err != nil {
			return err
		}
		r.release.Images[name] = index
		reference := r.registry() + "/" + name + ":" + r.Version.String()
		r.subjects = append(r.subjects, subject{reference, digest.Hex})
		fmt.Fprintf(&list, "%s@%s\n", reference, digest)
	}
	for _, u := range r.Upstream {
		fmt.Fprintln(&list, u.Reference())
	}
	return r.write("images.txt", []byte(list.String()))
}

func writeLayout(folder string, index v1.ImageIndex) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("writing the image %s: %w", filepath.Base(folder), err)
	}
	if _, err := layout.Write(folder, index); err != nil {
		return fmt.Errorf("writing the image %s: %w", filepath.Base(folder), err)
	}
	return nil
}

// licensesOf joins those of one command on several platforms.
func (r *run) licensesOf(command string, platforms []compile.Platform) []bill.License {
	var all []bill.License
	for _, p := range platforms {
		all = append(all, r.bills[compile.Binary(r.work, p, command)]...)
	}
	slices.SortStableFunc(all, func(a, b bill.License) int { return strings.Compare(a.Module.Path, b.Module.Path) })
	return slices.CompactFunc(all, func(a, b bill.License) bool { return a.Module == b.Module })
}

func (r *run) packPlugin(context.Context) error {
	r.say("packing the plugin for %d platforms", len(compile.PluginPlatforms()))
	third := bill.FormatLicenses(r.licensesOf(compile.Plugin, compile.PluginPlatforms()))
	var platforms []archive.KrewPlatform
	for _, p := range compile.PluginPlatforms() {
		binary := compile.Binary(r.work, p, compile.Plugin)
		content, err := os.ReadFile(binary)
		if err != nil {
			return fmt.Errorf("reading the plugin for %s: %w", p, err)
		}
		files := []archive.File{
			{Name: filepath.Base(binary), Content: content, Mode: 0o755},
			{Name: "LICENSE", Content: r.license, Mode: 0o644},
			{Name: "THIRD-PARTY", Content: third, Mode: 0o644},
		}
		pack, ending := archive.TarGzip, "tar.gz"
		if p.OS == "windows" {
			pack, ending = archive.Zip, "zip"
		}
		packed, err := pack(files, r.Commit.Time)
		if err != nil {
			return fmt.Errorf("packing the plugin for %s: %w", p, err)
		}
		name := fmt.Sprintf("%s_%s_%s_%s.%s", compile.Plugin, r.Version, p.OS, p.Architecture, ending)
		if err := r.write("plugin/"+name, packed); err != nil {
			return err
		}
		platforms = append(platforms, archive.KrewPlatform{
			OS: p.OS, Architecture: p.Architecture, URL: strings.TrimSuffix(r.Downloads, "/") + "/" + name,
			SHA256: hexSum(packed), Binary: filepath.Base(binary),
		})
	}
	manifest, err := archive.KrewManifest(r.Version.String(), platforms)
	if err != nil {
		return err
	}
	return r.write("plugin/plumbline.krew.yaml", manifest)
}

func (r *run) writeBills(context.Context) error {
	r.say("writing bills of materials")
	for _, p := range compile.PluginPlatforms() {
		for _, command := range compile.Commands(p) {
			binary := compile.Binary(r.work, p, command)
			content, err := os.ReadFile(binary)
			if err != nil {
				return fmt.Errorf("reading %s for %s: %w", command, p, err)
			}
			text, err := bill.CycloneDX(bill.Subject{
				Name: command, Version: r.Version.String(), Platform: p.String(), SHA256: hexSum(content), Time: r.Commit.Time,
			}, r.bills[binary])
			if err != nil {
				return err
			}
			if err := r.write(fmt.Sprintf("sbom/%s_%s_%s.cdx.json", command, p.OS, p.Architecture), text); err != nil {
				return err
			}
		}
	}
	return nil
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
