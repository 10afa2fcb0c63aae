// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The kubelet said "exec /webhook: no such file or directory" about a binary
// that was there, and the pod crashed until the install timed out.
func TestCheckStatic_RefusesADynamicBinaryThatWouldFailInThePod(t *testing.T) {
	dynamic, err := exec.LookPath("ls")
	if err != nil {
		t.Fatal(err)
	}
	var refusal *DynamicError
	if err := CheckStatic(dynamic); !errors.As(err, &refusal) || !strings.Contains(refusal.Loader, "ld-linux") {
		t.Errorf("CheckStatic(%s) = %v, want a DynamicError that names the loader", dynamic, err)
	}
}

func TestCheckStatic_TakesAStaticBinary(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := CheckStatic(binary); err != nil {
		t.Error(err)
	}
}

func TestCheckStatic_RefusesAFileThatIsNoBinary(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckStatic(script); err == nil {
		t.Error("a script was taken for a static binary")
	}
}

func TestCheckArchitecture(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckArchitecture(binary, runtime.GOARCH); err != nil {
		t.Error(err)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for _, architecture := range []string{other, "riscv64", ""} {
		if err := CheckArchitecture(binary, architecture); err == nil {
			t.Errorf("a binary of %s was taken for one of %q", runtime.GOARCH, architecture)
		}
	}
}
