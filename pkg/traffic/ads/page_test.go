// SPDX-License-Identifier: Apache-2.0

package ads_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/testnames"
)

var repository = filepath.Join("..", "..", "..")

// Each pitfall has a test with its number, the page names it, and no test is left out.
func TestThePageOfPitfallsNamesTestsThatExist(t *testing.T) {
	const pitfalls = 23
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "xds-pitfalls.md"))
	if err != nil {
		t.Fatal(err)
	}
	exist, named := testnames.In(t, repository), map[string]bool{}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \|.*\|$`).FindAllStringSubmatch(string(raw), -1)
	if len(rows) != pitfalls {
		t.Errorf("%d rows, want %d", len(rows), pitfalls)
	}
	for i, row := range rows {
		if row[1] != fmt.Sprint(i+1) {
			t.Errorf("row %d has the number %s", i+1, row[1])
		}
		own := false
		for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[0], -1) {
			named[m[1]] = true
			own = own || strings.HasPrefix(m[1], fmt.Sprintf("TestPitfall%02d", i+1))
			if !exist[m[1]] {
				t.Errorf("%d: there is no %s", i+1, m[1])
			}
		}
		if !own {
			t.Errorf("%d has no test with its number", i+1)
		}
	}
	for name := range exist {
		if strings.HasPrefix(name, "TestPitfall") && !named[name] {
			t.Errorf("the page does not name %s", name)
		}
	}
}
