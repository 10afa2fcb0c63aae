// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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
