// SPDX-License-Identifier: Apache-2.0

// Package trial runs the unit tests of a package with a mutant of one of its files. It
// builds with an overlay, so the work tree stays as it is.
package trial

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Target is a package whose tests are tried.
type Target struct {
	// Root is the directory of the module, Path that of the package below it.
	Root, Path string
	// Files are the source files of the package, as paths below Root.
	Files []string
	// Rapid tells whether the tests take the flags of pgregory.net/rapid.
	Rapid bool
	// Arguments of the test binary, beside those that each run has.
	Arguments []string
	// Digest is a hash of all inputs of a verdict: the package, its tests with their
	// data, and the imports.
	Digest string
}

type listed struct {
	ImportPath, Dir, ForTest string
	GoFiles                  []string
	Module                   *struct{ Main bool }
	Error                    *struct{ Err string }
}

// LoadTarget loads the package of a directory below the root of a module, whose test binary
// is run with arguments.
func LoadTarget(ctx context.Context, root, path string, arguments ...string) (Target, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-json=ImportPath,Dir,ForTest,GoFiles,Module,Error", "./"+path)
	cmd.Dir = root
	cmd.Stderr = new(bytes.Buffer)
	out, err := cmd.Output()
	if err != nil {
		return Target{}, fmt.Errorf("listing package %s: %w: %s", path, err, cmd.Stderr)
	}
	t := Target{Root: root, Path: path, Arguments: arguments}
	dir := filepath.Join(root, path)
	var dirs []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Target{}, fmt.Errorf("parsing the list of packages: %w", err)
		}
		if p.Error != nil {
			return Target{}, fmt.Errorf("listing package %s: %s", p.ImportPath, p.Error.Err)
		}
		t.Rapid = t.Rapid || p.ImportPath == "pgregory.net/rapid"
		if p.Module == nil || !p.Module.Main || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		dirs = append(dirs, p.Dir)
		if p.Dir == dir && p.ForTest == "" {
			for _, name := range p.GoFiles {
				t.Files = append(t.Files, filepath.Join(path, name))
			}
		}
	}
	if len(t.Files) == 0 {
		return Target{}, fmt.Errorf("listing package %s: it has no source files", path)
	}
	slices.Sort(dirs)
	t.Digest, err = t.digestFiles(dir, slices.Compact(dirs))
	return t, err
}

// digestFiles hashes the arguments, the files of the directories, and all that is below the
// directory of the package: its tests may read them. The tests of imports do not count.
func (t *Target) digestFiles(dir string, dirs []string) (string, error) {
	root, sum := t.Root, sha256.New()
	for _, argument := range t.Arguments {
		_, _ = fmt.Fprintf(sum, "%q\n", argument)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := hashFile(sum, filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if err != nil {
			return "", fmt.Errorf("reading a directory: %w", err)
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || d != dir && strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			if err := hashFile(sum, filepath.Join(d, e.Name())); err != nil {
				return "", err
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(dir, "testdata"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return hashFile(sum, path)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading data of tests: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func hashFile(sum io.Writer, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading a file: %w", err)
	}
	inner := sha256.Sum256(content)
	_, err = fmt.Fprintf(sum, "%s %x\n", path, inner)
	return err
}
