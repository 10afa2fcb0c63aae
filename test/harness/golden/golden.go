// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test made with a committed file, or writes the
// file when the environment has UPDATE_GOLDEN=1, as `make golden` sets it. Nothing
// else writes one: a test that fails is looked at before its file is. Of several files
// that are nearly the same one is whole, and the others hold what differs from it.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Variable is what has files written.
const Variable = "UPDATE_GOLDEN"

// Updates says whether files are to be written.
func Updates() bool { return os.Getenv(Variable) == "1" }

// Check compares with the file at a path, which begins at the test's package, or
// writes it. What differs fails the test and does not end it.
func Check[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if Updates() {
		write(t, path, []byte(got))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (%s=1 writes it)", err, Variable)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale, %s=1 rewrites it (-want +got):\n%s", path, Variable, diff)
	}
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}
