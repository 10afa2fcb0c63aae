// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// stageName begins each part of a cell: a stage of make test, or a piece of make test-all.
	stageName = regexp.MustCompile("^(unit|integration|floods|e2e|simulation|properties|by hand|`[a-z0-9-]+`)")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// none is the cell of a promise that the longer stages add no more to.
const none = "–"

// promise is a row of the table in docs/reference/testing.md.
type promise struct{ text, quick, long string }

// promises reads the rows of the table.
func promises(t *testing.T) (rows []promise) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| Promise |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("a row of the promises has %d cells, want 3: %s", len(cells), line)
		}
		rows = append(rows, promise{cells[0], cells[1], cells[2]})
	}
	if len(rows) < 30 {
		t.Fatalf("only %d promises were found", len(rows))
	}
	return rows
}

// makeTargets are the targets of the Makefile.
func makeTargets(t *testing.T) (names []string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		names = append(names, match[1])
	}
	return names
}

// A promise without a stage is held by chance.
func TestEachPromiseNamesTheStageThatHoldsIt(t *testing.T) {
	targets := makeTargets(t)
	for _, p := range promises(t) {
		cells := []string{p.quick}
		if p.long != none {
			cells = append(cells, p.long)
		}
		for _, cell := range cells {
			if !stageName.MatchString(cell) {
				t.Errorf("%q: %q begins with no stage", p.text, cell)
			}
			for part := range strings.SplitSeq(cell, "; ") {
				name, _, _ := strings.Cut(strings.TrimPrefix(part, "`"), "`")
				if strings.HasPrefix(part, "`") && !slices.Contains(targets, name) {
					t.Errorf("%q: the Makefile has no target %s", p.text, name)
				}
				checkFolders(t, p.text, part)
			}
		}
	}
}

// checkFolders checks that the folders which a part of a cell names are there.
func checkFolders(t *testing.T, text, part string) {
	t.Helper()
	stage, _, _ := strings.Cut(part, " ")
	below := map[string]string{"unit": "", "integration": "test/integration", "floods": "test/integration"}
	tree, is := below[stage]
	if !is {
		return
	}
	for _, match := range quoted.FindAllStringSubmatch(part, -1) {
		folder := strings.TrimSuffix(match[1], "/...")
		if info, err := os.Stat(filepath.Join(root, tree, folder)); err != nil || !info.IsDir() {
			t.Errorf("%q: there is no folder %s for the stage %s", text, folder, stage)
		}
	}
}

// Readers look a promise up by its row.
func TestEachFolderOfIntegrationTestsHoldsAPromise(t *testing.T) {
	var named strings.Builder
	for _, p := range promises(t) {
		named.WriteString(p.quick + " " + p.long + " ")
	}
	entries, err := os.ReadDir(filepath.Join(root, "test/integration"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		// The package peers holds benchmarks alone, and a target of its own runs them.
		if name := entry.Name(); entry.IsDir() && name != "peers" && !strings.Contains(named.String(), "`"+name) {
			t.Errorf("docs/reference/testing.md names no promise that test/integration/%s holds", name)
		}
	}
}
