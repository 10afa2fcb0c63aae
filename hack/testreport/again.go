// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxAgain is the number of tests of a stage that may run again. A change that breaks
// more tests than that is no question of luck.
const maxAgain = 2

// crash matches the lines by which a program of tests tells of a fault that no second
// run may excuse: a panic, an exceeded time limit, a race.
var crash = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|\*\*\* Test killed)`)

// runAgain matches the packages whose tests depend on the time of other processes.
var runAgain = regexp.MustCompile(`^(test/integration/|(test/e2e|test/hack/demo|hack/cluster)$)`)

// testsToRunAgain returns lines "package test" of the tests that failed. It returns no
// line unless a second run can tell a rare failure from a lasting one: each failure is
// that of a named test of a real part, few tests failed, and their programs ended in order.
func (r *result) testsToRunAgain() []string {
	if r.crashed {
		return nil
	}
	var tests []string
	for _, f := range r.failures {
		if f.Test == "" || !runAgain.MatchString(f.Package) {
			return nil
		}
		test, _, _ := strings.Cut(f.Test, "/")
		if line := f.Package + " " + test; !slices.Contains(tests, line) {
			tests = append(tests, line)
		}
	}
	if len(tests) > maxAgain {
		return nil
	}
	return tests
}

// writeAgain writes the tests that may run again, and the reasons of their failures, into
// a folder. It removes what an earlier run has left there.
func writeAgain(folder, stage string, tests []string, reasons string) error {
	for name, text := range map[string]string{
		againTests(stage):   strings.Join(tests, "\n") + "\n",
		againReasons(stage): reasons,
	} {
		name = filepath.Join(folder, name)
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the tests to run again: %w", err)
		}
		if len(tests) == 0 {
			continue
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the tests to run again: %w", err)
		}
	}
	return nil
}

func againTests(stage string) string   { return stage + ".again" }
func againReasons(stage string) string { return stage + ".reasons" }
