// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/plumbline-dev/plumbline/hack/release/internal/assemble"
	"github.com/plumbline-dev/plumbline/hack/release/internal/bill"
	"github.com/plumbline-dev/plumbline/hack/release/internal/chart"
	"github.com/plumbline-dev/plumbline/hack/release/internal/compile"
	"github.com/plumbline-dev/plumbline/hack/release/internal/oci"
	"github.com/plumbline-dev/plumbline/hack/release/internal/provenance"
	"github.com/plumbline-dev/plumbline/hack/release/internal/source"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// flags are the words of the command line.
type flags struct {
	version, registry, root, dist, helm, downloads, builder, key string
	plainHTTP, dirty, pin                                        bool
}

func parse(args []string, stderr io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.version, "version", "", "version of the release, such as v0.1.0")
	set.StringVar(&f.registry, "registry", "", "registry with a path, such as ghcr.io/me/plumbline, to push to; empty: push nothing")
	set.BoolVar(&f.plainHTTP, "plain-http", false, "the registry has no TLS")
	set.BoolVar(&f.dirty, "dirty", false, "permit files that differ from the commit; the provenance says so")
	set.BoolVar(&f.pin, "pin-upstream", false, "ask the registries of Redis and Envoy for digests, and pin them in the chart")
	set.StringVar(&f.downloads, "downloads", "", "address below which people download the plugin; empty: that of a release on GitHub")
	set.StringVar(&f.builder, "builder", "https://github.com/plumbline-dev/plumbline/blob/main/docs/guides/release.md#builder-local", "URI of the builder, for the provenance")
	set.StringVar(&f.key, "key", "", "file of the Ed25519 key (PKCS#8) that signs the provenance; empty: it is unsigned")
	set.StringVar(&f.root, "root", ".", "folder of the repository")
	set.StringVar(&f.dist, "dist", "dist", "folder in which the folder of the release is made")
	set.StringVar(&f.helm, "helm", "helm", "Helm 4")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("reading the arguments: %q is no flag: take it out", set.Args())
	}
	return f, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parse(args, stderr)
	if err != nil {
		return err
	}
	options, err := f.options(ctx, stderr)
	if err != nil {
		return err
	}
	release, err := assemble.Make(ctx, options)
	if err != nil {
		return err
	}
	last := "nothing is pushed; with REGISTRY=… it is"
	if f.registry != "" {
		if err := assemble.Push(ctx, options, release); err != nil {
			return err
		}
		last = fmt.Sprintf("install it:\nhelm install plumbline oci://%s/charts/plumbline --version %s --namespace plumbline-system --create-namespace --wait", f.registry, options.Version.Chart())
	}
	_, err = fmt.Fprintf(stdout, "%s is in %s; %s\n", options.Version, release.Folder, last)
	return err
}

// options reads all that a release depends on, before anything is compiled.
func (f flags) options(ctx context.Context, progress io.Writer) (assemble.Options, error) {
	version, err := source.ParseVersion(f.version)
	if err != nil {
		return assemble.Options{}, err
	}
	root, err := filepath.Abs(f.root)
	if err != nil {
		return assemble.Options{}, fmt.Errorf("finding the repository: %w", err)
	}
	commit, err := source.ReadCommit(ctx, root, version, f.dirty)
	if err != nil {
		return assemble.Options{}, err
	}
	registry := oci.Registry{Address: f.registry, PlainHTTP: f.plainHTTP}
	if f.registry != "" {
		if _, err := registry.Reference("webhook", version.String()); err != nil {
			return assemble.Options{}, err
		}
	}
	helm := chart.Helm{Binary: f.helm}
	if _, err := helm.Version(ctx); err != nil {
		return assemble.Options{}, err
	}
	key, err := f.readKey()
	if err != nil {
		return assemble.Options{}, err
	}
	upstream, err := f.upstream(ctx, root)
	if err != nil {
		return assemble.Options{}, err
	}
	cache, err := bill.ReadCache(ctx)
	if err != nil {
		return assemble.Options{}, err
	}
	compiler := compile.Go{Root: root, Version: version.String(), Revision: commit.Hash, Progress: progress}
	return assemble.Options{
		Version: version, Commit: commit, Root: root, Dist: f.dist, Registry: registry,
		Downloads: cmp.Or(f.downloads, "https://github.com/plumbline-dev/plumbline/releases/download/"+version.String()),
		Builder:   f.builder, GoVersion: runtime.Version(), Helm: helm, Key: key, Upstream: upstream, Cache: cache,
		Compile: compiler.Compile, Progress: progress,
		Packages: func(ctx context.Context, p compile.Platform, commands ...string) (map[string][]string, error) {
			return bill.ReadPackages(ctx, root, compile.Environment(p), commands...)
		},
	}, nil
}

func (f flags) readKey() (ed25519.PrivateKey, error) {
	if f.key == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.key)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	return provenance.ParseKey(text)
}

// upstream lists the images of other projects, by digest if that is asked for.
func (f flags) upstream(ctx context.Context, root string) ([]chart.Upstream, error) {
	values, err := os.ReadFile(filepath.Join(root, "charts", "plumbline", "values.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	images, err := chart.UpstreamImages(values)
	if err != nil || !f.pin {
		return images, err
	}
	return pin(ctx, images)
}

// pin asks the registries of images for the digests of their tags.
func pin(ctx context.Context, images []chart.Upstream) ([]chart.Upstream, error) {
	for i := range images {
		reference, err := name.NewTag(images[i].Reference())
		if err != nil {
			return nil, fmt.Errorf("naming the image of %s: %w", images[i].Name, err)
		}
		if images[i].Digest, err = oci.Digest(ctx, reference); err != nil {
			return nil, err
		}
	}
	return images, nil
}
