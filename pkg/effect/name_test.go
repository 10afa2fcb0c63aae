// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNamesOfAssessments(t *testing.T) {
	if got := NameOf("production-7", 3); got != "production-7-3" {
		t.Errorf("the name is %s", got)
	}
	if got := NameOfRun("web", 12); got != "web-run12" {
		t.Errorf("the name of a run is %s", got)
	}
	long := strings.Repeat("a", 253)
	first, second := NameOf(long, 0), NameOf(long, 1)
	if len(first) > 253 || first == second {
		t.Errorf("the names of two steps of a long plan are %s and %s", first, second)
	}
}

// A release with the name of a plan got no assessment: the names of its runs were those of the steps.
func TestNoRunHasTheNameOfAStepOrOfAnotherRun(t *testing.T) {
	owner := rapid.OneOf(rapid.SampledFrom([]string{"a", "a-1", "a-run", "a-run1", "a.run1"}), rapid.StringMatching(`[a-c]([a-c0-2.-]{0,6}[0-2])?`), rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("a", rapid.IntRange(240, 253).Draw(t, "length"))
	}))
	rapid.Check(t, func(t *rapid.T) {
		plan, release, other := owner.Draw(t, "plan"), owner.Draw(t, "release"), owner.Draw(t, "other release")
		step, run, otherRun := rapid.Int32Range(0, 30).Draw(t, "step"), rapid.Int64Range(1, 30).Draw(t, "run"), rapid.Int64Range(1, 30).Draw(t, "other run")
		of := NameOfRun(release, run)
		if of == NameOf(plan, step) {
			t.Errorf("run %d of %s and step %d of %s are both %s", run, release, step, plan, of)
		}
		if same := release == other && run == otherRun; same != (of == NameOfRun(other, otherRun)) {
			t.Errorf("run %d of %s is %s, and run %d of %s is %s", run, release, of, otherRun, other, NameOfRun(other, otherRun))
		}
	})
}
