// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

var (
	named    = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// The page names each test of the faults of the executor, and no other.
func TestThePageNamesWhatIsTried(t *testing.T) {
	raw, err := os.ReadFile(pagePath())
	if err != nil {
		t.Fatal(err)
	}
	var onPage, here []string
	for _, match := range named.FindAllStringSubmatch(string(raw), -1) {
		onPage = append(onPage, match[1])
	}
	files, err := filepath.Glob(filepath.Join(rendered.RepositoryDir(), "test", "integration", "executorfaults", "*", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			if match[1] != "TestMain" {
				here = append(here, match[1])
			}
		}
	}
	slices.Sort(onPage)
	slices.Sort(here)
	CheckLines(t, "the tests on the page", slices.Compact(onPage), here...)
}
