// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

var (
	named    = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// The page on threats names tests that exist, and every attack of this package.
func TestThePageOnThreatsNamesWhatIsTried(t *testing.T) {
	root := rendered.RepositoryDir()
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "threats.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, here := map[string]bool{}, map[string]bool{}
	own, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, match := range declared.FindAllStringSubmatch(string(raw), -1) {
			all[match[1]] = true
			if filepath.Dir(path) == own {
				here[match[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	onPage := map[string]bool{}
	for _, match := range named.FindAllStringSubmatch(string(page), -1) {
		onPage[match[1]] = true
		if !all[match[1]] {
			t.Errorf("the page names %s, which does not exist", match[1])
		}
	}
	for name := range here {
		if !onPage[name] && name != "TestMain" && name != t.Name() {
			t.Errorf("the page does not name %s", name)
		}
	}
}
