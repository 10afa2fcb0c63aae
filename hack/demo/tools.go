// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// toolPath returns a folder with kubectl, helm and the plugin. Each kind of
// cluster has a folder of its own: two demos may run side by side, and tests
// beside them.
func toolPath(ctx context.Context, n *narrator, o options) (string, error) {
	dir, err := filepath.Abs(map[bool]string{true: "bin/path", false: "bin/path-current"}[o.cluster == "local"])
	if err != nil {
		return "", fmt.Errorf("finding the folder for tools: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating %s: %w", dir, err)
	}
	plugin, err := filepath.Abs("bin/kubectl-plumbline")
	if err != nil {
		return "", fmt.Errorf("finding the plugin: %w", err)
	}
	tools := map[string]string{"kubectl-plumbline": plugin, "kubectl_complete-plumbline": plugin}
	if o.cluster == "local" {
		n.progress("building Kubernetes and its tools where they are not in the cache yet (about 10 minutes on 2 cores, once)")
		if err := call(ctx, n, clusterTool, "build", "--only", "pods"); err != nil {
			return "", err
		}
	}
	for _, tool := range []string{"helm", "kubectl"} {
		if tools[tool] = installedTool(ctx, o, tool); tools[tool] != "" {
			continue
		}
		if tools[tool], err = capture(ctx, clusterTool, "which", tool); err != nil {
			return "", err
		}
	}
	for name, target := range tools {
		if err := link(target, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// installedTool finds the user's own tool for the user's own cluster, or "" where
// it must be built: that of the local cluster is of the cluster's version, and the
// chart is made for Helm 4.
func installedTool(ctx context.Context, o options, tool string) string {
	path, err := exec.LookPath(tool)
	if err != nil || o.cluster == "local" {
		return ""
	}
	if tool == "helm" {
		version, err := exec.CommandContext(ctx, path, "version", "--template", "{{.Version}}").Output()
		if err != nil || !strings.HasPrefix(string(version), "v4.") {
			return ""
		}
	}
	return path
}

// link makes or replaces a symbolic link in one step, so that whoever runs the
// tool at this moment finds it.
func link(target, name string) error {
	if present, err := os.Readlink(name); err == nil && present == target {
		return nil
	}
	next := name + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	if err := os.Symlink(target, next); err != nil {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	if err := os.Rename(next, name); err != nil {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	return nil
}
