// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// folder is a new one with a copy of a file of testdata.
func folder(t *testing.T, name string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(read(t, name)), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// The golden files are what a run prints. The events are those of the go command.
func TestReport(t *testing.T) {
	tests := map[string]struct {
		events  string
		verbose bool
		fails   bool
	}{
		"passed":         {events: "passed.ndjson"},
		"failed":         {events: "failed.ndjson", fails: true},
		"failed-verbose": {events: "failed.ndjson", verbose: true, fails: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := options{stage: "integration", waits: folder(t, "waits.jsonl"), times: filepath.Join("testdata", "times.tsv"), verbose: tc.verbose}
			var out bytes.Buffer
			if err := run(o, strings.NewReader(read(t, tc.events)), &out); errors.Is(err, errFailed) != tc.fails || !tc.fails && err != nil {
				t.Errorf("it ends with %v", err)
			}
			golden.Check(t, filepath.Join("testdata", name+".golden"), out.String())
		})
	}
}

// Stages that run side by side add to one list, and a run that passed adds nothing.
func TestTheReasonsOfFailuresAreListed(t *testing.T) {
	list := filepath.Join(t.TempDir(), "failures")
	for _, events := range []string{"failed.ndjson", "passed.ndjson", "failed.ndjson"} {
		o := options{stage: "e2e", times: filepath.Join("testdata", "times.tsv"), failures: list, verbose: true}
		if err := run(o, strings.NewReader(read(t, events)), io.Discard); err != nil && !errors.Is(err, errFailed) {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(list) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	const reason = "== Failed in e2e: pkg/remediate TestParts/bad\n    a_test.go:6: it is bad\n"
	if text := string(content); strings.Count(text, reason) != 2 || strings.Contains(text, "not to be seen") || strings.Contains(text, "TestOK") {
		t.Errorf("the list, which wants twice %q:\n%s", reason, text)
	}
}

// A failure in a long log is told with its first and its last lines.
func TestGist(t *testing.T) {
	said := func(lines ...string) (all []event) {
		for _, line := range lines {
			all = append(all, event{Test: "TestA", Output: line + "\n"})
		}
		return append(all, event{Test: "TestB", Output: "of another\n"})
	}
	numbered := func(from, to int) (lines []string) {
		for i := from; i <= to; i++ {
			lines = append(lines, fmt.Sprint("line ", i))
		}
		return lines
	}
	tests := map[string]struct {
		lines, want []string
	}{
		"nothing":                           {nil, nil},
		"a few lines":                       {[]string{"=== RUN   TestA", "    a_test.go:1: no", "", "--- FAIL: TestA (0.00s)"}, []string{"    a_test.go:1: no"}},
		"as many lines as are told":         {numbered(1, 20), numbered(1, 20)},
		"one line more":                     {numbered(1, 21), slices.Concat(numbered(1, 10), []string{"[1 lines]"}, numbered(12, 21))},
		"a line that is cut in a character": {[]string{strings.Repeat("x", maxLine-1) + "äöü"}, []string{strings.Repeat("x", maxLine-1) + " [6 bytes]"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, gist(said(tc.lines...), "TestA")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARunThatPassedRewritesItsTimes(t *testing.T) {
	tests := map[string]struct {
		events, want string
	}{
		"a run that passed": {"passed.ndjson", header +
			"integration\ttest/integration/ads\t63.0\nintegration\ttest/integration/assess\t40.2\nintegration\ttest/integration/execute\t95.5\n" +
			"integration\ttest/integration/kinds\t7.5\nintegration\ttest/integration/signals\t21.5\nunit\tpkg/remediate/exec\t2.0\n"},
		"a run that failed": {"failed.ndjson", read(t, "times.tsv")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			times := filepath.Join(folder(t, "times.tsv"), "times.tsv")
			err := run(options{stage: "integration", times: times, rewrite: true}, strings.NewReader(read(t, tc.events)), &bytes.Buffer{})
			if err != nil && !errors.Is(err, errFailed) {
				t.Fatal(err)
			}
			got, err := os.ReadFile(times)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestInputThatCannotBeUsedIsAnError(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "times.tsv")
	if err := os.WriteFile(broken, []byte(header+"unit\tpkg\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		options options
		want    string
	}{
		"a stage without a name":       {options{}, "-stage"},
		"a table with too few columns": {options{stage: "unit", times: broken}, "2 fields"},
		"a table without a header":     {options{stage: "unit", times: filepath.Join("testdata", "waits.jsonl")}, "header"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(tc.options, strings.NewReader(read(t, "passed.ndjson")), &bytes.Buffer{})
			if err == nil || errors.Is(err, errFailed) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %q", err, tc.want)
			}
		})
	}
}
