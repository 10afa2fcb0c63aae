// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var repository = filepath.Join("..", "..", "..")

// testNames are all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	out := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
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

func TestThePageNamesTestsThatExist(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "admission.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	exist := testNames(t)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1)
	if len(named) < 39 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, m := range named {
		if !exist[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	_, section, _ := strings.Cut(page, "## What goes wrong")
	if rows := len(regexp.MustCompile(`(?m)^\| \d+ \|`).FindAllString(section, -1)); rows != 39 {
		t.Errorf("%d rows", rows)
	}
}
