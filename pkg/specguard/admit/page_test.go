// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/testnames"
)

var repository = filepath.Join("..", "..", "..")

func TestThePageNamesTestsThatExist(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "admission.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	exist := testnames.In(t, repository)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1)
	if len(named) < 39 {
		t.Errorf("the page names %d tests", len(named))
	}
	for _, m := range named {
		if !exist[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	_, section, _ := strings.Cut(page, "## Problems of webhooks")
	if rows := len(regexp.MustCompile(`(?m)^\| \d+ \|`).FindAllString(section, -1)); rows != 39 {
		t.Errorf("%d rows", rows)
	}
}
