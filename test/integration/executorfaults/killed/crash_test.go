// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// inStepTwo are writes of the second step, which are those of the first one again.
var inStepTwo = regexp.MustCompile(`\bapi$|: Verified settled recorded, (Intent|Applied|Verified)|: 2 granted|^record 3$`)

// crashes are all points of a run; or one for every second sort of write, now before
// it, now after it. More of them are among the other tests.
func crashes(writes []string) []failpoint.Crash {
	var points []failpoint.Crash
	sorts := 0
	for _, write := range writes {
		if failpoint.Long() {
			points = append(points, failpoint.Before(write), failpoint.After(write))
			continue
		}
		if last := strings.HasPrefix(write, "plan Succeeded"); !last && inStepTwo.MatchString(write) {
			continue
		}
		if sorts++; sorts%2 == 1 {
			points = append(points, []func(string) failpoint.Crash{failpoint.Before, failpoint.After}[len(points)%2](write))
		}
	}
	return points
}

// ofCrashes is the table of all writes of a plan that puts two Deployments back.
var ofCrashes = failpoint.Table{Name: "crashes", Columns: []string{"Write", "Killed before it, the next one begins with", "Killed after it, the next one begins with"}}

// TestAnExecutorKilledAtAnyWriteEndsWhereAnUndisturbedOneDoes carries the same plan
// out again and again. Each time the executor is killed at another write, and
// started again.
func TestAnExecutorKilledAtAnyWriteEndsWhereAnUndisturbedOneDoes(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	calm := shared.MakeWorlds(t, 1)[0]
	writes := undisturbed(t, calm)
	ofCrashes.CheckRows(t, writes...)
	points := crashes(writes)
	var worlds []*failpoint.World
	for i, point := range points {
		if i%failpoint.Batch == 0 {
			worlds = shared.MakeWorlds(t, min(failpoint.Batch, len(points)-i))
		}
		t.Run(point.String(), func(t *testing.T) {
			w, f := worlds[i%failpoint.Batch].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := w.MakePlan()
			e := shared.Start(t, f, point.Fault())
			e.UntilKilledAt(point)
			second := shared.Start(t, f, "")
			w.UntilSucceeded(plan, f)
			w.Must(second.Stop())
			ofCrashes.CheckCell(t, point.Write, point.Column(), failpoint.FirstWrite(point, e.Writes(), second.Writes()))
		})
	}
}

// undisturbed carries a plan out in peace, and tells which writes that takes.
func undisturbed(t *testing.T, w *failpoint.World) []string {
	t.Helper()
	f := failpoint.NewFiles(t)
	defer w.Forget()
	plan := w.MakePlan()
	e := shared.Start(t, f, "")
	if p := w.UntilWell(plan, f); golden.Updates() { // by this run alone, so that all others are held against it
		w.Must(os.WriteFile(failpoint.UndisturbedPath(), []byte(w.Account(p, f.Records)), 0o644)) //nolint:gosec // a file of the repository
	}
	w.UntilSucceeded(plan, f)
	w.Must(e.Stop())
	return failpoint.Steady(e.Writes())
}
