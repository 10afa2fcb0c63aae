// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// A window closed between the intent of a step and its write. The plan kept its place in the
// ledger until the window opened again, and a request of an executor that had died could be
// stored at any time until then.
func TestAnIntentWhoseWindowClosesHoldsNothingAndIsNeverStoredLate(t *testing.T) {
	closes := func(w *world) { w.closed = "the window is closed" }
	pauses := func(w *world) { w.ask(v1alpha1.PlanPause) }
	tests := map[string]struct {
		gone bool
		// fate of the request that was decided; none was sent if it is nil.
		fate   *fate
		hold   func(*world)
		counts bool
		// version that the target has while the plan waits: a fence moves it on.
		version int
		wrote   int
	}{
		"a request that was never decided needs no fence":      {hold: closes, version: 10},
		"a creation that was never decided is made later":      {gone: true, hold: closes, version: 10},
		"a request of a dead executor is refused":              {fate: new(late), hold: closes, version: 11},
		"a request that was never sent is fenced all the same": {fate: new(unsent), hold: closes, version: 11},
		"a fence that the generation of its target counts":     {fate: new(unsent), hold: closes, counts: true, version: 12},
		"a request of before a pause is refused":               {fate: new(late), hold: pauses, version: 11},
		"a request that was stored is found to be":             {fate: new(unanswered), hold: closes, version: 11, wrote: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, test.gone)
			w.countsFences = test.counts
			e := &executor{w: w, holder: "a"}
			until[WriteTarget](t, e)
			if test.fate != nil {
				e.carry(*test.fate)
				e.restart("b")
			} else {
				e.facts.Brakes = nil // other answers have taken their time
			}
			test.hold(w)
			e.untilItWaits(t)
			w.arriveAll()
			step := w.plan.Status.Steps[0]
			place := ledger.Find(w.ledger, ledger.Step{PlanUID: "plan-uid"})
			switch {
			case test.wrote > 0:
				if step.State != v1alpha1.StepApplied {
					t.Errorf("the step is %s", step.State)
				}
			case step.State != v1alpha1.StepPlanned || step.Intent != nil || step.StartTime != nil:
				t.Errorf("the step is %s, with the intent %v, granted at %s", step.State, step.Intent, step.StartTime)
			case place != nil:
				t.Errorf("it waits for %q, and holds the place %+v", e.waits, place)
			}
			if w.objects[0].version != test.version || w.effects[0] != test.wrote {
				t.Errorf("the target has version %d after %d writes", w.objects[0].version, w.effects[0])
			}
			w.closed = ""
			w.ask("")
			e.finish(t)
			step = w.plan.Status.Steps[0]
			if step.State != v1alpha1.StepVerified || w.effects[0] != 1 || w.broken != "" {
				t.Errorf("at the end the step is %s after %d writes; %s; what happened:\n%q", step.State, w.effects[0], w.broken, step.Logs)
			}
		})
	}
}

// untilItWaits carries everything out until the plan waits for what may last.
func (e *executor) untilItWaits(t *testing.T) {
	t.Helper()
	for range 200 {
		e.decide()
		e.carry(fine)
		if e.waits != "" {
			return
		}
	}
	t.Fatalf("it never waits, and is about to do %T", e.pending)
}

// A window that closes again and again between intent and write is no contention.
func TestAStepWhoseIntentIsRevokedAgainAndAgainIsWrittenInTheEnd(t *testing.T) {
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
	e := &executor{w: w, holder: "a"}
	for range 2 * maxAttempts {
		until[WriteTarget](t, e)
		e.facts.Brakes = nil // other answers have taken their time
		w.closed = "the window is closed"
		e.untilItWaits(t)
		w.closed = ""
		w.now = w.now.Add(time.Hour)
	}
	e.finish(t)
	if step := &w.plan.Status.Steps[0]; step.State != v1alpha1.StepVerified || w.effects[0] != 1 {
		t.Errorf("the step is %s %s after %d writes: %q", step.State, step.Reason, w.effects[0], step.Logs)
	}
}
