// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *volume.Store {
	t.Helper()
	s, err := volume.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Contract(t, func(t *testing.T) evidence.Store { return open(t, t.TempDir()) })
}

func reasonOf(err error) evidence.StoreReason {
	var failed *evidence.StoreError
	if !errors.As(err, &failed) {
		return ""
	}
	return failed.Reason
}

func TestOpen_NeedsADirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := volume.Open(filepath.Join(dir, "absent")); reasonOf(err) != evidence.StoreUnreachable {
		t.Errorf("an absent directory: got %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := volume.Open(file); reasonOf(err) == "" {
		t.Errorf("a file: got %v", err)
	}
}

// TestCreate_LeavesOneFile: no temporary file and no sidecar beside the record.
func TestCreate_LeavesOneFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for range 2 {
		if err := s.Create(t.Context(), evidence.Name("chain", 1), []byte("x")); err != nil && !errors.Is(err, evidence.ErrExists) {
			t.Fatal(err)
		}
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var files []string
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, evidence.Name("chain", 1))}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCreate_StaysInside: no name leads out of the directory.
func TestCreate_StaysInside(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"../x", "/x", "a/../../x", "a/b/c", "", ".."} {
		if err := s.Create(t.Context(), name, []byte("x")); reasonOf(err) == "" {
			t.Errorf("%q: got %v", name, err)
		}
		if _, err := s.Read(t.Context(), name); reasonOf(err) == "" {
			t.Errorf("%q: read, got %v", name, err)
		}
	}
}

// TestSweep takes what a killed writer left, and no record. Until then it is not listed.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	name := evidence.Name("chain", 1)
	if err := s.Create(t.Context(), name, []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".tmp-1", "chain/.tmp-2"} {
		if err := os.WriteFile(filepath.Join(dir, left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n, err := range s.List(t.Context(), "") {
		if n != name || err != nil {
			t.Errorf("listed %q, %v", n, err)
		}
	}
	if err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", ".tmp-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if data, err := s.Read(t.Context(), name); err != nil || string(data) != "x" {
		t.Errorf("the record: %q, %v", data, err)
	}
}

// TestRead_ADirectoryIsNoRecord: reading fails, it is not absent.
func TestRead_ADirectoryIsNoRecord(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, evidence.Name("chain", 1)), 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir).Read(t.Context(), evidence.Name("chain", 1)); reasonOf(err) == "" {
		t.Errorf("got %v", err)
	}
}
