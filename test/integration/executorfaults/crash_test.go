// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"os"
	"regexp"
	"strings"
	"testing"

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

// crashes are all points of a run; or one for each sort of write, now before it, now
// after it.
func crashes(writes []string) []crash {
	var points []crash
	for _, write := range writes {
		switch last := strings.HasPrefix(write, "plan Succeeded"); {
		case strings.Contains(write, "which waits"):
			// It is there in some runs only: a place is given back at the end of a second.
		case long():
			points = append(points, crash{"before", write}, crash{"after", write})
		case last || !inStepTwo.MatchString(write):
			points = append(points, crash{[]string{"before", "after"}[len(points)%2], write})
		}
	}
	return points
}

// TestAnExecutorKilledAtAnyWriteEndsWhereAnUndisturbedOneDoes carries the same plan
// out again and again. Each time the executor is killed at another write, and
// started again.
func TestAnExecutorKilledAtAnyWriteEndsWhereAnUndisturbedOneDoes(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	calm := shared.prepared(t, 1)[0]
	writes := undisturbed(t, calm)
	points := crashes(writes)
	worlds := shared.prepared(t, len(points))
	for i, point := range points {
		t.Run(point.String(), func(t *testing.T) {
			w, f := worlds[i].Within(t), newFiles(t)
			defer w.Forget()
			plan := w.planned()
			e := shared.start(t, f, point.fault())
			e.killed()
			if made := e.writes(); made[len(made)-1] != point.write {
				t.Errorf("it died at %q", made[len(made)-1])
			}
			second := shared.start(t, f, "")
			w.succeeded(plan, f)
			w.Must(second.Stop())
			page.crash(t, point, e.writes(), second.writes())
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
	if p := w.well(plan, f); updates() { // by this run alone, so that all others are held against it
		w.Must(os.WriteFile(undisturbedFile, []byte(w.Account(p, f.Records)), 0o644)) //nolint:gosec // a file of the repository
	}
	w.succeeded(plan, f)
	w.Must(e.Stop())
	page.undisturbed(t, e.writes())
	return e.writes()
}
