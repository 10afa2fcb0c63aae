// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// cgroupMount is where every Linux distribution mounts its control groups.
const cgroupMount = "/sys/fs/cgroup"

// CgroupHierarchies lists the roots of the control group hierarchies below mount:
// with version 2 that is mount itself, with version 1 one folder per controller
// (links such as "cpu" to "cpu,cpuacct" are the same hierarchy and left out).
func CgroupHierarchies(mount string) ([]string, error) {
	if isHierarchy(mount) {
		return []string{mount}, nil
	}
	entries, err := os.ReadDir(mount)
	if err != nil {
		return nil, fmt.Errorf("listing control groups: %w", err)
	}
	var roots []string
	for _, entry := range entries {
		if root := filepath.Join(mount, entry.Name()); entry.IsDir() && isHierarchy(root) {
			roots = append(roots, root)
		}
	}
	return roots, nil
}

func isHierarchy(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "cgroup.procs"))
	return err == nil
}

// CreateCgroup makes the control group in every hierarchy: the kubelet insists
// that its root exists, and makes everything below by itself.
func CreateCgroup(name string) error {
	roots, err := CgroupHierarchies(cgroupMount)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating a control group: %w", err)
		}
	}
	return nil
}

// cgroupRetry is how often a control group is tried that is still busy: the
// kernel lets go of dead processes asynchronously.
const cgroupRetry = 20 * time.Millisecond

// RemoveCgroup removes the control group and all below it from every hierarchy.
// Its processes must have been killed. It returns when all are gone.
func RemoveCgroup(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, plan.CgroupPrefix) || strings.Contains(name, "/") {
		return fmt.Errorf("refusing to remove control group %q: not one of ours", name)
	}
	roots, err := CgroupHierarchies(cgroupMount)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := removeTree(ctx, filepath.Join(root, name)); err != nil {
			return fmt.Errorf("removing a control group: %w", err)
		}
	}
	return nil
}

func removeTree(ctx context.Context, root string) error {
	ticker := time.NewTicker(cgroupRetry)
	defer ticker.Stop()
	for {
		err := removeFolders(root)
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-ticker.C:
		}
	}
}

// removeFolders removes the folders below root and root, children first. The
// files in them are the kernel's and vanish with them.
func removeFolders(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return ignoreAbsent(err)
	})
	for _, folder := range slices.Backward(folders) {
		if err := ignoreAbsent(os.Remove(folder)); err != nil {
			return err
		}
	}
	return err
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isBusy is true while a group has a dying process, or a child that appeared
// after the walk.
func isBusy(err error) bool { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) }
