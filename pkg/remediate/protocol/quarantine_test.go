// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// What a quarantine writes is the Baseline, which outlives its object, and which the assessor
// writes all the time. Each case is a blow between the intent of a quarantine and its answer.
func TestAQuarantineIsStoredOnceWhatever(t *testing.T) {
	tests := map[string]struct {
		fate fate
		// blow strikes before another executor takes over.
		blow  func(*world)
		state v1alpha1.StepState
		why   v1alpha1.StepReason
		wrote int
	}{
		"is stored as it should be":        {fate: fine, state: v1alpha1.StepVerified, wrote: 1},
		"was lost before it was sent":      {fate: unsent, state: v1alpha1.StepVerified, wrote: 1},
		"had no answer":                    {fate: unanswered, state: v1alpha1.StepVerified, wrote: 1},
		"is late":                          {fate: late, state: v1alpha1.StepVerified, wrote: 1},
		"is late, and the assessor writes": {fate: late, blow: func(w *world) { w.assess(0) }, state: v1alpha1.StepVerified, wrote: 1},
		"had no answer, and the object is in sync again": {fate: unanswered, blow: func(w *world) {
			w.foreign(0, desiredHash)
			w.assess(0)
		}, state: v1alpha1.StepVerified, wrote: 1},
		"is late, and another object has the name": {fate: late, blow: func(w *world) { w.replace(0) }, state: v1alpha1.StepSkipped, why: v1alpha1.ReasonTargetReplaced},
		"is late, and the object is gone":          {fate: late, blow: func(w *world) { w.objects[0].exists = false }, state: v1alpha1.StepSkipped, why: v1alpha1.ReasonTargetReplaced},
		"was lost before it was sent, and another drift takes the place": {fate: unsent, blow: func(w *world) {
			w.foreign(0, "another")
			w.assess(0)
		}, state: v1alpha1.StepSkipped, why: v1alpha1.ReasonTargetMoved},
		"is late, and another drift takes the place": {fate: late, blow: func(w *world) {
			w.foreign(0, "another")
			w.assess(0)
		}, state: v1alpha1.StepSkipped, why: v1alpha1.ReasonTargetMoved},
		"had no answer, and another drift takes the place": {fate: unanswered, blow: func(w *world) {
			w.foreign(0, "another")
			w.assess(0)
		}, state: v1alpha1.StepVerified, wrote: 1},
		"had no answer, and the object is gone": {fate: unanswered, blow: func(w *world) { w.objects[0].exists = false }, state: v1alpha1.StepFailed, why: v1alpha1.ReasonTargetReplaced, wrote: 1},
		"is late, and the plan is canceled":     {fate: late, blow: func(w *world) { w.ask(v1alpha1.PlanCancel) }, state: v1alpha1.StepFenced, why: v1alpha1.ReasonStopped},
		"is late, and the window closes": {fate: late, blow: func(w *world) {
			w.closed = "the window is closed"
		}, state: v1alpha1.StepPlanned},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionQuarantine, [][]int32{{0}}, false)
			e := &executor{w: w, holder: "a"}
			until[WriteTarget](t, e)
			e.carry(test.fate)
			if test.blow != nil {
				test.blow(w)
			}
			if test.fate != fine {
				e.restart("b")
			}
			arrivesWhenEnded(t, w, e, test.state)
			step := &w.plan.Status.Steps[0]
			if step.State != test.state || step.Reason != test.why || w.effects[0] != test.wrote || w.broken != "" {
				t.Errorf("the step is %s %s after %d writes; %s; what happened: %q", step.State, step.Reason, w.effects[0], w.broken, step.Logs)
			}
		})
	}
}

// arrivesWhenEnded goes on until the step has that state, and has everything arrive that is late.
func arrivesWhenEnded(t *testing.T, w *world, e *executor, state v1alpha1.StepState) {
	t.Helper()
	for range 400 {
		if w.plan.Status.Steps[0].State == state {
			break
		}
		e.decide()
		e.carry(fine)
		if e.waits != "" {
			w.now = w.now.Add(again)
		}
	}
	w.arriveAll()
}
