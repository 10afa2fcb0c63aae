// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

const root = "../../.."

// tree is a copy of the repository.
type tree struct {
	*testing.T
	dir string
}

// copyTree copies what git tracks or would track. It reads every file itself, so
// that `go test` runs again when one has changed.
func copyTree(t *testing.T) tree {
	t.Helper()
	list := child.Bind(exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	c := tree{t, t.TempDir()}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) { // removed, and not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		c.write(name, data, info.Mode().Perm())
	}
	if result := c.run(nil, "git", "init", "-q"); result.status != 0 {
		t.Fatal(result.output)
	}
	return c
}

func (c tree) write(name string, data []byte, mode fs.FileMode) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		c.Fatal(err)
	}
}

// edit replaces the first occurrence of a text, which must be there.
func (c tree) edit(name, from, to string) {
	c.Helper()
	path := filepath.Join(c.dir, name)
	data, err := os.ReadFile(path)
	if err != nil {
		c.Fatal(err)
	}
	if !bytes.Contains(data, []byte(from)) {
		c.Fatalf("%s does not hold %q: the test breaks nothing", name, from)
	}
	c.write(name, bytes.Replace(data, []byte(from), []byte(to), 1), 0o644)
}

// files lists what is in a folder of the copy.
func (c tree) files(name string) []string {
	c.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(c.dir, name), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(c.dir, path)
			found = append(found, relative)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Fatal(err)
	}
	return found
}

// result is how a command ended.
type result struct {
	status int
	output string
}

// run runs a command in the copy as from a fresh terminal: without the settings
// of a make or a race detector that this test runs under.
func (c tree) run(env []string, program string, args ...string) result {
	c.Helper()
	command := child.Bind(exec.CommandContext(c.Context(), program, args...))
	command.Dir = c.dir
	command.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GO_TEST_FLAGS", "CGO_ENABLED", "UPDATE_GOLDEN"}, name)
	}), append([]string{"CGO_ENABLED=0"}, env...)...)
	output, err := command.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		c.Fatalf("running %s: %v", program, err)
	}
	return result{command.ProcessState.ExitCode(), string(output)}
}

// wantFailure checks that the command failed with that status and said this.
func (c tree) wantFailure(r result, status int, says ...string) {
	c.Helper()
	if r.status != status {
		c.Errorf("exit status %d, want %d", r.status, status)
	}
	for _, want := range says {
		if !strings.Contains(r.output, want) {
			c.Errorf("the output lacks %q", want)
		}
	}
	if c.Failed() {
		c.Logf("output:\n%s", r.output)
	}
}
