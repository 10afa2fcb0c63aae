// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// TestHAProxyComesWithItsLibraries needs a registry that has the wheel.
func TestHAProxyComesWithItsLibraries(t *testing.T) {
	t.Parallel()
	p, cache := newProgram(t), t.TempDir()
	source, err := component.Load(os.DirFS("components"), component.Pick(component.HAProxy)[0])
	if err != nil {
		t.Fatal(err)
	}
	haproxy := strings.TrimSpace(p.run("--cache", cache, "which", "haproxy"))
	// Without the folder lib, the loader finds no libcrypt.so.2 on most machines.
	command := exec.CommandContext(t.Context(), haproxy, "-v")
	command.Env = []string{}
	version := "version " + strings.TrimPrefix(source.Version, "v") + "-"
	if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), version) {
		t.Errorf("want %s, got (%v) %s", version, err, output)
	}
}

// TestNginxNeedsNoLibraries needs a registry that has the wheel.
func TestNginxNeedsNoLibraries(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	nginx := strings.TrimSpace(p.run("--cache", t.TempDir(), "which", "nginx"))
	if output, err := exec.CommandContext(t.Context(), nginx, "-v").CombinedOutput(); err != nil || !strings.Contains(string(output), "nginx/1.31.3") {
		t.Errorf("want 1.31.3, got (%v) %s", err, output)
	}
}
