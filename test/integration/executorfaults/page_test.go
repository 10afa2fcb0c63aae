// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
)

// The part of the page that is about crashes is held equal to what is seen.
const (
	pageBegin = "<!-- crashes: begin, rewritten by PLUMBLINE_FAULTS=long UPDATE_GOLDEN=1 -->\n"
	pageEnd   = "<!-- crashes: end -->\n"
	pageHead  = "| Write | Killed before it, the next one begins with | Killed after it, the next one begins with |\n|---|---|---|\n"
)

// crashPage is the table of docs/reference/executor-faults.md: for each write what
// the next executor begins with.
type crashPage struct{}

var page crashPage

func (crashPage) path() string {
	return filepath.Join(rendered.RepositoryDir(), "docs", "reference", "executor-faults.md")
}

// split is the page before, in and after the table.
func (p crashPage) split(t *testing.T) (before, table, after string) {
	t.Helper()
	raw, err := os.ReadFile(p.path())
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(raw), pageBegin)
	table, after, ends := strings.Cut(rest, pageEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for crashes", p.path())
	}
	return before, table, after
}

// rows are those of the table; the first cell is the write.
func (p crashPage) rows(t *testing.T) [][]string {
	t.Helper()
	_, table, _ := p.split(t)
	var rows [][]string
	for line := range strings.Lines(strings.TrimPrefix(table, pageHead)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 3 {
			t.Fatalf("%s: no row of three: %q", p.path(), line)
		}
		rows = append(rows, cells)
	}
	return rows
}

func updates() bool { return os.Getenv("UPDATE_GOLDEN") == "1" }

func (p crashPage) store(t *testing.T, rows [][]string) {
	t.Helper()
	before, _, after := p.split(t)
	var table strings.Builder
	for _, cells := range rows {
		fmt.Fprintf(&table, "| %s |\n", strings.Join(cells, " | "))
	}
	text := before + pageBegin + pageHead + table.String() + pageEnd + after
	if err := os.WriteFile(p.path(), []byte(text), 0o644); err != nil { //nolint:gosec // a page of the repository
		t.Fatal(err)
	}
}

// undisturbed checks that the page has all writes of a run in their order.
func (p crashPage) undisturbed(t *testing.T, writes []string) {
	t.Helper()
	var want []string
	for _, w := range writes {
		if !strings.Contains(w, "which waits") {
			want = append(want, w)
		}
	}
	rows := p.rows(t)
	if updates() {
		known := map[string][]string{}
		for _, cells := range rows {
			known[cells[0]] = cells
		}
		rows = nil
		for _, w := range want {
			cells := known[w]
			if cells == nil {
				cells = []string{w, "not tried", "not tried"}
			}
			rows = append(rows, cells)
		}
		p.store(t, rows)
	}
	var got []string
	for _, cells := range rows {
		got = append(got, cells[0])
	}
	is(t, "the writes of the page", got, want...)
}

// crash checks what the page says about a crash.
func (p crashPage) crash(t *testing.T, point crash, first, second []string) {
	t.Helper()
	want := beginsWith(point, first, second)
	column := map[string]int{"before": 1, "after": 2}[point.when]
	rows := p.rows(t)
	i := slices.IndexFunc(rows, func(cells []string) bool { return cells[0] == point.write })
	switch {
	case i < 0:
		t.Errorf("the page does not know %q", point.write)
	case updates():
		rows[i][column] = want
		p.store(t, rows)
	case rows[i][column] != want:
		t.Errorf("the page says that the next executor begins with %q, and it was %q", rows[i][column], want)
	}
}

// beginsWith is the first write of an executor after it has taken a plan over.
func beginsWith(point crash, first, second []string) string {
	begun := slices.Index(first, created)
	if takesOver := len(second) > 0 && begun >= 0 && (begun < len(first)-1 || point.when == "after"); takesOver {
		second = second[1:]
	}
	second = slices.DeleteFunc(slices.Clone(second), func(w string) bool { return strings.Contains(w, "which waits") })
	if len(second) == 0 {
		return "nothing"
	}
	return second[0]
}

var (
	named    = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// The page names every test of this package, and no other.
func TestThePageNamesWhatIsTried(t *testing.T) {
	raw, err := os.ReadFile(page.path())
	if err != nil {
		t.Fatal(err)
	}
	var onPage, here []string
	for _, match := range named.FindAllStringSubmatch(string(raw), -1) {
		onPage = append(onPage, match[1])
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllStringSubmatch(string(source), -1) {
			if match[1] != "TestMain" && match[1] != t.Name() {
				here = append(here, match[1])
			}
		}
	}
	slices.Sort(onPage)
	slices.Sort(here)
	is(t, "the tests on the page", slices.Compact(onPage), here...)
}
