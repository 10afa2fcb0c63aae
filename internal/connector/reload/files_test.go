// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreReplacedWhole(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "below")
	for _, content := range []string{"first", "second, which is longer", "3"} {
		if err := WriteFiles(folder, File{"a", []byte("a" + content)}, File{"b", []byte("b" + content)}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != name+content {
				t.Errorf("%s holds %q (%v), want %q", name, got, err, name+content)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("the folder has %v (%v), want two files", left, err)
	}
}

func TestAFileThatCannotBeReplacedIsLeftAlone(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "taken"), 0o755); err != nil { // no file can replace a folder
		t.Fatal(err)
	}
	if err := WriteFiles(folder, File{"first", nil}, File{"taken", nil}, File{"last", []byte("new")}); err == nil {
		t.Error("a folder was replaced")
	}
	if _, err := os.Stat(filepath.Join(folder, "last")); err == nil {
		t.Error("the last file was written, and the one before it was not")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}
