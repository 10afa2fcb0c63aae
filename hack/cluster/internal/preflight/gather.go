// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/sandbox"
)

const cgroupMount = "/sys/fs/cgroup"

// Gather looks at the machine. It changes nothing on it: what it tries out, it
// tries in namespaces that end with the attempt.
func Gather(ctx context.Context, cache string) (Facts, error) {
	facts := Facts{OS: runtime.GOOS, Root: os.Geteuid() == 0, Commands: map[string]bool{}}
	var err error
	if facts.FreeDisk, err = freeDisk(cache); err != nil {
		return Facts{}, err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Facts{}, fmt.Errorf("asking for the memory size: %w", err)
	}
	facts.Memory = info.Totalram * uint64(info.Unit)
	for command := range packageOf {
		facts.Commands[command] = installed(command)
	}
	facts.Commands["pip"] = builder.HasPip(ctx) // used as a module of python3, not by a name of its own
	facts.AptGet = installed("apt-get")
	if facts.Cgroup, facts.Controllers, err = controlGroups(cgroupMount); err != nil {
		return Facts{}, err
	}
	if facts.Root {
		facts.Kernel = probeKernel(ctx)
	}
	return facts, nil
}

// freeDisk is what a user may still write where folder is or will be.
func freeDisk(folder string) (uint64, error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(folder, &stat)
		if err == nil {
			return stat.Bavail * uint64(stat.Bsize), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			return 0, fmt.Errorf("asking for free disk space at %s: %w", folder, err)
		}
		folder = filepath.Dir(folder)
	}
}

// installed looks also where system commands are when the PATH is a plain user's.
func installed(command string) bool {
	if _, err := exec.LookPath(command); err == nil {
		return true
	}
	for _, folder := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if _, err := exec.LookPath(filepath.Join(folder, command)); err == nil {
			return true
		}
	}
	return false
}

// controlGroups tells the version, and the controllers, of what is mounted. A
// hybrid, version 1 with an empty version 2 beside it, counts as version 1: that
// is what the kubelet takes it for.
func controlGroups(mount string) (version int, controllers []string, err error) {
	data, err := os.ReadFile(filepath.Join(mount, "cgroup.controllers"))
	if err == nil {
		return 2, strings.Fields(string(data)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, nil, fmt.Errorf("reading the control group controllers: %w", err)
	}
	roots, err := sandbox.CgroupHierarchies(mount)
	if err != nil || len(roots) == 0 {
		return 0, nil, ignoreAbsent(err)
	}
	for _, root := range roots {
		// Distributions mount several controllers as one: "cpu,cpuacct".
		controllers = append(controllers, strings.Split(filepath.Base(root), ",")...)
	}
	return 1, controllers, nil
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// probeKernel runs [Probe] in new namespaces. When even that cannot be started,
// the namespaces themselves are what is lacking.
func probeKernel(ctx context.Context) map[string]string {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, "/proc/self/exe", ProbeCommand)
	command.Stdout = &output
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: sandbox.Namespaces}
	if err := command.Run(); err != nil {
		return map[string]string{FeatureNamespaces: err.Error()}
	}
	features := map[string]string{}
	if err := json.Unmarshal(output.Bytes(), &features); err != nil {
		return map[string]string{FeatureNamespaces: "the probe answered " + output.String()}
	}
	return features
}
