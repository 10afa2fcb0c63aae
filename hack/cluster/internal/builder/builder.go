// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// Builder compiles components into Cache.
type Builder struct {
	Components string    // folder that holds one module per component
	Cache      string    // folder that holds one folder per built component
	Progress   io.Writer // told what is going on, line by line
}

// HostTarget is the target of a cluster that runs on this machine.
func HostTarget() component.Target {
	return component.Target{OS: runtime.GOOS, Arch: runtime.GOARCH, GoVersion: runtime.Version()}
}

// Ensure returns the folders of the components by component name, and builds
// those that are missing, one after the other: each go command already uses
// every core.
func (b Builder) Ensure(ctx context.Context, components []component.Component) (map[string]string, error) {
	folders := make(map[string]string, len(components))
	for _, c := range components {
		source, err := component.Load(os.DirFS(b.Components), c)
		if err != nil {
			return nil, err
		}
		folder, err := b.ensure(ctx, source)
		if err != nil {
			return nil, err
		}
		folders[c.Name] = folder
	}
	return folders, nil
}

// Folders returns where the components are, or will be, without building them.
func (b Builder) Folders(components []component.Component) (map[string]string, error) {
	folders := make(map[string]string, len(components))
	for _, c := range components {
		source, err := component.Load(os.DirFS(b.Components), c)
		if err != nil {
			return nil, err
		}
		folders[c.Name] = b.folder(source)
	}
	return folders, nil
}

// Missing names those of the components that would have to be built, sorted.
func (b Builder) Missing(components []component.Component) ([]string, error) {
	folders, err := b.Folders(components)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		exists, err := isFolder(folders[name])
		if err != nil {
			return nil, err
		}
		if !exists {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

func (b Builder) folder(source component.Source) string {
	return filepath.Join(b.Cache, source.CacheName(HostTarget()))
}

func (b Builder) ensure(ctx context.Context, source component.Source) (string, error) {
	folder := b.folder(source)
	if exists, err := isFolder(folder); exists || err != nil {
		return folder, err
	}
	err := Publish(ctx, folder, b.Progress, func(staging string) error {
		return b.make(ctx, source, staging)
	})
	if err != nil {
		return "", fmt.Errorf("building %s %s: %w", source.Name, source.Version, err)
	}
	return folder, nil
}

// Publish makes folder exist with what fill puts into an empty staging folder,
// once among all processes that ask for it: either folder is there complete, or
// not at all. When it exists already, fill is not called.
func Publish(ctx context.Context, folder string, progress io.Writer, fill func(staging string) error) error {
	if exists, err := isFolder(folder); exists || err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("creating the cache folder: %w", err)
	}
	unlock, err := Lock(ctx, folder+".lock", func() {
		fmt.Fprintf(progress, "waiting for another process that makes %s\n", filepath.Base(folder))
	})
	if err != nil {
		return err
	}
	defer unlock()
	if exists, err := isFolder(folder); exists || err != nil {
		return err // the process we waited for has made it
	}
	// A staging folder found here was left by a process that died: we hold the lock.
	staging := folder + ".staging"
	if err := os.RemoveAll(staging); err != nil {
		return fmt.Errorf("removing an unfinished build: %w", err)
	}
	if err := os.Mkdir(staging, 0o755); err != nil {
		return fmt.Errorf("creating the staging folder: %w", err)
	}
	if err := fill(staging); err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	if err := os.Rename(staging, folder); err != nil {
		return fmt.Errorf("publishing %s: %w", filepath.Base(folder), err)
	}
	return nil
}

func isFolder(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s is in the way: not a folder", path)
	}
	return true, nil
}
