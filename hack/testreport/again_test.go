// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFewFailuresOfRealPartsRunAgain(t *testing.T) {
	failed := func(names ...string) (events []string) {
		last := "test/integration/a"
		for _, name := range names {
			pkg, test, _ := strings.Cut(name, " ")
			last = pkg
			events = append(events, `{"Action":"output","Package":"`+module+pkg+`","Test":"`+test+`","Output":"    a_test.go:6: it is bad\n"}`,
				`{"Action":"fail","Package":"`+module+pkg+`","Test":"`+test+`"}`)
		}
		return append(events, `{"Action":"fail","Package":"`+module+last+`","Elapsed":1}`)
	}
	says := func(text string, events []string) []string {
		return append([]string{`{"Action":"output","Package":"` + module + `test/integration/a","Output":"` + text + `\n"}`}, events...)
	}
	const a, b, c = "test/integration/a TestA", "test/integration/a TestB", "test/integration/a TestC"
	tests := map[string]struct {
		events []string
		want   string
	}{
		"one test runs again":                           {failed(a), a + "\n"},
		"parts of a test run again once, with the test": {failed(a+"/x", a+"/y", a), a + "\n"},
		"two tests run again":                           {failed(a, b), a + "\n" + b + "\n"},
		"three failures are no question of luck":        {failed(a, b, c), ""},
		"a test of one package alone has no excuse":     {failed("pkg/traffic TestA"), ""},
		"a test of whole clusters runs again":           {failed("hack/cluster TestA"), "hack/cluster TestA\n"},
		"a test of the demo runs again":                 {failed("test/hack/demo TestA"), "test/hack/demo TestA\n"},
		"a unit test of the clusters has no excuse":     {failed("hack/cluster/internal/plan TestA"), ""},
		"a package that failed without a test has none": {failed(), ""},
		"a race has none":                               {says("WARNING: DATA RACE", failed(a)), ""},
		"a panic has none":                              {says("panic: test timed out after 30m0s", failed(a)), ""},
		"a build that failed has none":                  {append(failed(a), `{"Action":"build-fail","ImportPath":"x"}`), ""},
		"a package that did not end has none":           {append(failed(a), `{"Action":"start","Package":"x"}`, `{"Action":"output","Package":"x","Output":"y\n"}`), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for _, left := range []string{againTests("e2e"), againReasons("e2e")} { // by an earlier run
				if err := os.WriteFile(filepath.Join(folder, left), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := options{stage: "e2e", times: filepath.Join("testdata", "times.tsv"), again: folder, failures: filepath.Join(folder, "failures")}
			if err := run(o, strings.NewReader(strings.Join(tc.events, "\n")), io.Discard); !errors.Is(err, errFailed) {
				t.Errorf("the run ends with %v", err)
			}
			if diff := cmp.Diff(tc.want, readFile(t, folder, againTests("e2e"))); diff != "" {
				t.Errorf("the tests that run again (-want +got):\n%s", diff)
			}
			reasons, of := readFile(t, folder, againReasons("e2e")), "the tests that run again"
			if tc.want == "" {
				reasons, of = readFile(t, folder, "failures"), "the run"
			}
			if !strings.HasPrefix(reasons, "\n== Failed in e2e: ") {
				t.Errorf("the failures of %s are %q", of, reasons)
			}
		})
	}
}

// readFile returns the content of a file, or an empty text if there is no file.
func readFile(t *testing.T, folder, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // the test's own
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}
