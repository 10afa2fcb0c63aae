// SPDX-License-Identifier: Apache-2.0

// Package testnames reads the names of tests from the source, so that a page of the
// documentation that names the test of each claim names only tests that exist.
package testnames

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// In are the names of all tests below a folder.
func In(t testing.TB, folder string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(raw, -1) {
			out[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
