// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// crash is a point at which the executor dies.
type crash struct {
	when  string // before or after
	write string
}

func (c crash) String() string { return c.when + " " + c.write }

func (c crash) fault() string { return "kill:" + c.when + ":" + c.write }

// inStepTwo are writes of the second step, which are those of the first one again.
var inStepTwo = regexp.MustCompile(`\bapi$|: Verified settled recorded, (Reserved|Intent|Applied|Verified)|: 2 granted|^record 3$`)

// column of a table that has one for each moment.
func (c crash) column() int { return map[string]int{"before": 1, "after": 2}[c.when] }

// crashes are all points of a run; or one for every second sort of write, now before
// it, now after it. More of them are among the other tests.
func crashes(writes []string) []crash {
	var points []crash
	sorts := 0
	for _, write := range writes {
		if long() {
			points = append(points, crash{"before", write}, crash{"after", write})
			continue
		}
		if last := strings.HasPrefix(write, "plan Succeeded"); !last && inStepTwo.MatchString(write) {
			continue
		}
		if sorts++; sorts%2 == 1 {
			points = append(points, crash{[]string{"before", "after"}[len(points)%2], write})
		}
	}
	return points
}

// batch is how many worlds are prepared at once: together they wait for less, and
// each one that is there costs the assessor a little.
const batch = 25

// ofCrashes is the table of all writes of a plan that puts two Deployments back.
var ofCrashes = table{"crashes", []string{"Write", "Killed before it, the next one begins with", "Killed after it, the next one begins with"}}

// TestAnExecutorKilledAtAnyWriteEndsWhereAnUndisturbedOneDoes carries the same plan
// out again and again. Each time the executor is killed at another write, and
// started again.
func TestAnExecutorKilledAtAnyWriteEndsWhereAnUndisturbedOneDoes(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	calm := shared.prepared(t, 1)[0]
	writes := undisturbed(t, calm)
	ofCrashes.has(t, writes...)
	points := crashes(writes)
	var worlds []*world
	for i, point := range points {
		if i%batch == 0 {
			worlds = shared.prepared(t, min(batch, len(points)-i))
		}
		t.Run(point.String(), func(t *testing.T) {
			w, f := worlds[i%batch].Within(t), newFiles(t)
			defer w.Forget()
			plan := w.planned()
			e := shared.start(t, f, point.fault())
			e.killedAt(point)
			second := shared.start(t, f, "")
			w.succeeded(plan, f)
			w.Must(second.Stop())
			ofCrashes.says(t, point.write, point.column(), beginsWith(point, e.writes(), second.writes()))
		})
	}
}

// undisturbed carries a plan out in peace, and tells which writes that takes.
func undisturbed(t *testing.T, w *world) []string {
	t.Helper()
	f := newFiles(t)
	defer w.Forget()
	plan := w.planned()
	e := shared.start(t, f, "")
	if p := w.well(plan, f); golden.Updates() { // by this run alone, so that all others are held against it
		w.Must(os.WriteFile(undisturbedFile, []byte(w.Account(p, f.Records)), 0o644)) //nolint:gosec // a file of the repository
	}
	w.succeeded(plan, f)
	w.Must(e.Stop())
	return steady(e.writes())
}

// killedAt waits until a failpoint has killed the executor, at this very write.
func (e *executor) killedAt(point crash) {
	e.t.Helper()
	e.killed()
	if made := e.writes(); made[len(made)-1] != point.write {
		e.t.Errorf("it died at %q", made[len(made)-1])
	}
}
