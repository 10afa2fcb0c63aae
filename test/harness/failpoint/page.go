// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// pagePath is where the page is.
func pagePath() string {
	return filepath.Join(rendered.RepositoryDir(), "docs", "reference", "executor-faults.md")
}

// Table is one of docs/reference/executor-faults.md that is held equal to what is
// seen. The first cell of a row says where the executor was killed, the others with
// which write the next one goes on.
type Table struct {
	Name    string
	Columns []string
}

const untried = "not tried"

func (p Table) begin() string {
	return "<!-- " + p.Name + ": begin, rewritten by PLUMBLINE_FAULTS=long UPDATE_GOLDEN=1 -->\n"
}

func (p Table) end() string { return "<!-- " + p.Name + ": end -->\n" }

func (p Table) head() string {
	return "| " + strings.Join(p.Columns, " | ") + " |\n" + strings.Repeat("|---", len(p.Columns)) + "|\n"
}

// split is the page before, in and after the table.
func (p Table) split(t *testing.T) (before, table, after string) {
	t.Helper()
	raw, err := os.ReadFile(pagePath())
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(raw), p.begin())
	table, after, ends := strings.Cut(rest, p.end())
	if !begins || !ends {
		t.Fatalf("%s has no place for %s", pagePath(), p.Name)
	}
	return before, table, after
}

// rows are those of the table.
func (p Table) rows(t *testing.T) [][]string {
	t.Helper()
	_, table, _ := p.split(t)
	var rows [][]string
	for line := range strings.Lines(strings.TrimPrefix(table, p.head())) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != len(p.Columns) {
			t.Fatalf("%s, %s: no row of %d: %q", pagePath(), p.Name, len(p.Columns), line)
		}
		rows = append(rows, cells)
	}
	return rows
}

func (p Table) store(t *testing.T, rows [][]string) {
	t.Helper()
	before, _, after := p.split(t)
	var table strings.Builder
	for _, cells := range rows {
		fmt.Fprintf(&table, "| %s |\n", strings.Join(cells, " | "))
	}
	text := before + p.begin() + p.head() + table.String() + p.end() + after
	if err := os.WriteFile(pagePath(), []byte(text), 0o644); err != nil { //nolint:gosec // a page of the repository
		t.Fatal(err)
	}
}

// CheckRows checks that the table has these rows in their order.
func (p Table) CheckRows(t *testing.T, want ...string) {
	t.Helper()
	rows := p.rows(t)
	if golden.Updates() {
		known := map[string][]string{}
		for _, cells := range rows {
			known[cells[0]] = cells
		}
		rows = nil
		for _, first := range want {
			cells := known[first]
			if cells == nil {
				cells = append([]string{first}, slices.Repeat([]string{untried}, len(p.Columns)-1)...)
			}
			rows = append(rows, cells)
		}
		p.store(t, rows)
	}
	var got []string
	for _, cells := range rows {
		got = append(got, cells[0])
	}
	CheckLines(t, "the rows of the table of "+p.Name, got, want...)
}

// CheckCell checks a cell.
func (p Table) CheckCell(t *testing.T, row string, column int, want string) {
	t.Helper()
	rows := p.rows(t)
	i := slices.IndexFunc(rows, func(cells []string) bool { return cells[0] == row })
	switch {
	case i < 0:
		t.Errorf("the table of %s does not know %q", p.Name, row)
	case golden.Updates():
		rows[i][column] = want
		p.store(t, rows)
	case rows[i][column] != want:
		t.Errorf("the page says of %q that the next executor begins with %q, and it was %q", row, rows[i][column], want)
	}
}

// Steady are the writes that are there in every run: a plan may also store what it
// waits for, and a claim that meets the assessor's write of the same status is tried
// again. Any other write that is made twice stays so.
func Steady(writes []string) []string {
	writes = slices.DeleteFunc(slices.Clone(writes), func(w string) bool { return strings.Contains(w, "which waits") })
	return slices.CompactFunc(writes, func(a, b string) bool { return a == b && ofClaim.MatchString(a) })
}

// ofClaim are the writes of a Baseline's status.
var ofClaim = regexp.MustCompile(`^(claim|let go of) `)

// FirstWrite is the first write of an executor after it has taken a plan over. A plan that
// has ended is taken over by the write that says that people were told.
func FirstWrite(point Crash, first, second []string) string {
	begun := slices.IndexFunc(first, func(w string) bool { return strings.HasPrefix(w, "plan Created: ") })
	takesOver := len(second) > 0 && begun >= 0 && (begun < len(first)-1 || point.When == "after")
	if takesOver && !strings.Contains(second[0], ", announced: ") {
		second = second[1:]
	}
	if second = Steady(second); len(second) == 0 {
		return "nothing"
	}
	return second[0]
}
