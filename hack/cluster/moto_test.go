// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestMotoComesWithAllThatItImports needs a registry that has the wheels.
func TestMotoComesWithAllThatItImports(t *testing.T) {
	t.Parallel()
	p, cache := newProgram(t), t.TempDir()
	moto := strings.TrimSpace(p.run("--cache", cache, "which", "moto"))
	if output, err := exec.CommandContext(t.Context(), moto, "--help").CombinedOutput(); err != nil || !strings.Contains(string(output), "--port") {
		t.Errorf("want the help of the server, got (%v) %s", err, output)
	}
}
