// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sometimes is a test that fails in its first runs, as many as the file "fails" has bytes.
const sometimes = `//go:build integration

package a

import (
	"os"
	"testing"
)

func TestSometimes(t *testing.T) {
	left, err := os.ReadFile("fails")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := os.OpenFile("runs", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runs.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		if err := os.WriteFile("fails", left[1:], 0o600); err != nil {
			t.Fatal(err)
		}
		t.Error("not this time")
	}
}
`

// TestAStagePassesOnlyIfWhatFailedPassesThreeTimes gives the script a module with one test.
func TestAStagePassesOnlyIfWhatFailedPassesThreeTimes(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "hack", "again.sh"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		fails    string // in the runs that follow
		listed   string
		env      []string
		passes   bool
		runs     int
		rare, of string // parts of the two lists
	}{
		"the test passes three times":           {listed: "test/integration/a TestSometimes\n", passes: true, runs: 3, rare: "the reason\n== It passed"},
		"the test fails again":                  {fails: "x", listed: "test/integration/a TestSometimes\n", runs: 3, of: "the reason"},
		"the report lists no test":              {runs: 0},
		"a strict run does not excuse the test": {listed: "test/integration/a TestSometimes\n", env: []string{"PLUMBLINE_STRICT=1"}, of: "the reason"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := tree{t, t.TempDir()}
			c.write("hack/again.sh", script, 0o755)
			c.write("bin/cluster", []byte("#!/bin/sh\necho none\n"), 0o755)
			c.write("go.mod", []byte("module example.com/again\n\ngo 1.24\n"), 0o644)
			c.write("test/integration/a/a_test.go", []byte(sometimes), 0o644)
			c.write("test/integration/a/fails", []byte(tc.fails), 0o644)
			c.write("bin/stages/integration.again", []byte(tc.listed), 0o644)
			c.write("bin/stages/integration.reasons", []byte("the reason\n"), 0o644)
			r := c.run(tc.env, "hack/again.sh", "integration")
			if passed := r.status == 0; passed != tc.passes {
				t.Errorf("exit status %d:\n%s", r.status, r.output)
			}
			runs, _ := os.ReadFile(filepath.Join(c.dir, "test/integration/a/runs")) //nolint:gosec // the test's own
			rare, _ := os.ReadFile(filepath.Join(c.dir, "bin/stages/rare"))         //nolint:gosec // the test's own
			failures, _ := os.ReadFile(filepath.Join(c.dir, "bin/stages/failures")) //nolint:gosec // the test's own
			if len(runs) != tc.runs || !strings.HasPrefix(string(rare), tc.rare) || !strings.HasPrefix(string(failures), tc.of) ||
				(tc.rare == "") != (len(rare) == 0) || (tc.of == "") != (len(failures) == 0) {
				t.Errorf("%d runs; rare: %q; failures: %q", len(runs), rare, failures)
			}
		})
	}
}
