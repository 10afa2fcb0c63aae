// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Call runs one of our own tools and passes its output on.
func Call(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// Install builds what is missing, brings the local cluster of that name up and
// installs the chart; with INSTALLED set it takes the cluster as a run with KEEP
// left it. It works from the root of the repository.
func Install(ctx context.Context, name string) (*Cluster, error) {
	if err := endWithTest(); err != nil {
		return nil, err
	}
	if os.Getenv("INSTALLED") == "" {
		if err := Call(ctx, "go", "run", "./hack/demo", "install", "--name", name); err != nil {
			return nil, err
		}
	}
	out, err := exec.CommandContext(ctx, "bin/cluster", "kubeconfig", "--name", name).Output()
	if err != nil {
		return nil, fmt.Errorf("finding the kubeconfig: %w", err)
	}
	path, err := filepath.Abs("bin/path")
	if err != nil {
		return nil, fmt.Errorf("finding the folder of kubectl and helm: %w", err)
	}
	return &Cluster{Kubeconfig: strings.TrimSpace(string(out)), Path: path}, nil
}

// endWithTest makes a cluster that is brought up end with this process, also when the
// process is killed, unless KEEP is set.
func endWithTest() error {
	if os.Getenv("KEEP") != "" {
		return nil
	}
	if err := os.Setenv("PLUMBLINE_OWNER", strconv.Itoa(os.Getpid())); err != nil {
		return fmt.Errorf("naming the owner of the cluster: %w", err)
	}
	return nil
}

// Remove takes a local cluster away, unless KEEP is set.
func Remove(ctx context.Context, name string) {
	if os.Getenv("KEEP") != "" {
		return
	}
	if err := Call(ctx, "bin/cluster", "down", "--name", name); err != nil {
		fmt.Fprintln(os.Stderr, "removing the cluster:", err)
	}
}
