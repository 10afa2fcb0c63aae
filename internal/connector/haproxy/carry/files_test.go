// SPDX-License-Identifier: Apache-2.0

package carry

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/connector/haproxy"
)

func TestFilesAreReplacedWhole(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "below")
	for _, content := range []string{"first", "second, which is longer", "3"} {
		files := haproxy.Files{Config: []byte("c" + content), Splits: []byte("s" + content), Matches: []byte("m" + content)}
		if err := write(folder, files); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{haproxy.ConfigFile: "c", haproxy.SplitsFile: "s", haproxy.MatchesFile: "m"} {
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
	if err := os.Mkdir(filepath.Join(folder, haproxy.SplitsFile), 0o755); err != nil { // no file can replace a folder
		t.Fatal(err)
	}
	if err := write(folder, haproxy.Files{Config: []byte("new")}); err == nil {
		t.Error("a folder was replaced")
	}
	if _, err := os.Stat(filepath.Join(folder, haproxy.ConfigFile)); err == nil {
		t.Error("the configuration was written, and its map was not")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*.*.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}
