// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/connector/nginx"
)

func TestFilesAreReplacedWhole(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "below")
	for _, content := range []string{"first", "second, which is longer", "3"} {
		files := nginx.Files{Config: []byte("c" + content), Request: []byte("s" + content), Main: []byte("m" + content)}
		if err := write(folder, files); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{nginx.ConfigFile: "c", nginx.RequestFile: "s", nginx.MainFile: "m"} {
			if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want+content {
				t.Errorf("%s holds %q (%v), want %q", name, got, err, want+content)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 3 {
		t.Errorf("the folder has %v (%v), want three files", left, err)
	}
}

func TestAFileThatCannotBeReplacedIsLeftAlone(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, nginx.RequestFile), 0o755); err != nil { // no file can replace a folder
		t.Fatal(err)
	}
	if err := write(folder, nginx.Files{Config: []byte("new")}); err == nil {
		t.Error("a folder was replaced")
	}
	if _, err := os.Stat(filepath.Join(folder, nginx.ConfigFile)); err == nil {
		t.Error("the configuration was written, and its request file was not")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*.*.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}
