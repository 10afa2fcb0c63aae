// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsReplacedWholeWithItsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, tc := range []struct {
		content string
		mode    fs.FileMode
	}{{"first", 0o600}, {"second, which is longer", 0o644}, {"", 0o600}} {
		if err := Replace(path, []byte(tc.content), tc.mode); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tc.content {
			t.Errorf("the file has %q (%v), want %q", got, err, tc.content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != tc.mode {
			t.Errorf("the mode is %v (%v), want %v", info.Mode(), err, tc.mode)
		}
	}
}

func TestAFileThatCannotBeReplacedIsLeftWithNoOtherBesideIt(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "taken"), 0o700); err != nil { // no file can replace a folder
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(folder, "taken"), []byte("new"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v (%v), want what it had", left, err)
	}
}
