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
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating a control group: %w", err)
		}
		if err := setWeight(group); err != nil {
			return err
		}
	}
	return nil
}

// weights are the files of the processor controller, in version 1 and 2, and four times
// the default of each. All pods of a cluster are one group beside each single process
// of the host. With the weight of one process, compilers take the processors from all
// pods: names are no longer resolved, and probes fail.
var weights = map[string]string{"cpu.shares": "4096", "cpu.weight": "400"}

// setWeight gives a control group its share of the processors, where the hierarchy of
// the group has a processor controller.
func setWeight(group string) error {
	for name, weight := range weights {
		file, err := os.OpenFile(filepath.Join(group, name), os.O_WRONLY|os.O_TRUNC, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("setting the weight of a control group: %w", err)
		}
		_, err = file.WriteString(weight)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("setting the weight of a control group: %w", err)
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
