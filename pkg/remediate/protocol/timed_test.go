// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// until carries everything out until an effect of a type is next.
func until[T Effect](t *testing.T, e *executor) {
	t.Helper()
	for range 200 {
		e.decide()
		if _, ok := e.pending.(T); ok {
			return
		}
		e.carry(fine)
	}
	t.Fatalf("it never comes to %T, but to %T (%s)", *new(T), e.pending, e.waits)
}

// Ends of a step that need something to happen at one moment.
func TestEndsThatNeedATimedBlow(t *testing.T) {
	cancel := func(w *world) { w.ask(v1alpha1.PlanCancel) }
	tests := map[string]struct {
		gone bool
		// fate of the write, and what happens after it was sent.
		fate  fate
		after func(*world)
		// second happens when the executor is about to write once more.
		second func(*world)
		state  v1alpha1.StepState
		reason v1alpha1.StepReason
		phase  v1alpha1.PlanPhase
		wrote  int
	}{
		"canceled while its write is late, it is fenced, and the write refused":            {fate: late, after: cancel, state: v1alpha1.StepFenced, reason: v1alpha1.ReasonStopped, phase: v1alpha1.PlanCanceled},
		"canceled when its write was never sent, it is fenced":                             {fate: unsent, after: cancel, state: v1alpha1.StepFenced, reason: v1alpha1.ReasonStopped, phase: v1alpha1.PlanCanceled},
		"canceled when its answer was lost, it has written, and is not ready":              {fate: unanswered, after: cancel, state: v1alpha1.StepFailed, reason: v1alpha1.ReasonStopped, phase: v1alpha1.PlanCanceled, wrote: 1},
		"canceled when it has written and is ready, it is verified":                        {fate: fine, after: func(w *world) { w.objects[0].ready = true; cancel(w) }, state: v1alpha1.StepVerified, phase: v1alpha1.PlanCanceled, wrote: 1},
		"replaced while its answer is lost, nobody knows":                                  {fate: unanswered, after: func(w *world) { w.replace(0) }, state: v1alpha1.StepFailed, reason: v1alpha1.ReasonTargetReplaced, phase: v1alpha1.PlanFailed, wrote: 1},
		"put back by a bot while its answer is lost, it is not written twice":              {fate: unanswered, after: func(w *world) { w.foreign(0, driftedHash) }, state: v1alpha1.StepFailed, reason: v1alpha1.ReasonTargetMoved, phase: v1alpha1.PlanFailed, wrote: 1},
		"not sent and tried again, it is written once":                                     {fate: unsent, after: func(*world) {}, second: func(*world) {}, state: v1alpha1.StepVerified, phase: v1alpha1.PlanSucceeded, wrote: 1},
		"late and tried again, one of the two is stored":                                   {fate: late, after: func(*world) {}, second: func(w *world) { w.arriveAll() }, state: v1alpha1.StepVerified, phase: v1alpha1.PlanSucceeded, wrote: 1},
		"refused after an earlier request without an answer, nothing ends until it may":    {fate: unsent, after: func(*world) {}, second: func(w *world) { w.forbidden = true }, state: v1alpha1.StepVerified, phase: v1alpha1.PlanSucceeded, wrote: 1},
		"a creation that is late is waited for when the plan is canceled":                  {gone: true, fate: late, after: cancel, state: v1alpha1.StepFailed, reason: v1alpha1.ReasonTargetReplaced, phase: v1alpha1.PlanCanceled},
		"made, and removed before anybody knew, it is not made a second time":              {gone: true, fate: unanswered, after: func(w *world) { w.objects[0].exists = false }, state: v1alpha1.StepFailed, reason: v1alpha1.ReasonTargetReplaced, phase: v1alpha1.PlanFailed, wrote: 1},
		"a creation whose answer was lost is found":                                        {gone: true, fate: unanswered, after: func(*world) {}, state: v1alpha1.StepVerified, phase: v1alpha1.PlanSucceeded, wrote: 1},
		"the executor dies with its write on the way, and another finds it was stored":     {fate: unanswered, after: func(*world) {}, state: v1alpha1.StepVerified, phase: v1alpha1.PlanSucceeded, wrote: 1},
		"halted while its write is late, it is fenced as when somebody cancels":            {fate: late, after: func(w *world) { w.halted = "halted" }, state: v1alpha1.StepFenced, reason: v1alpha1.ReasonStopped, phase: v1alpha1.PlanCanceled},
		"its revision damaged while its write is late, it is fenced before it is given up": {fate: late, after: func(w *world) { w.damaged = true }, state: v1alpha1.StepSkipped, reason: v1alpha1.ReasonRevisionDamaged, phase: v1alpha1.PlanSkipped},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, test.gone)
			e := &executor{w: w, holder: "a"}
			until[WriteTarget](t, e)
			e.carry(test.fate)
			test.after(w)
			if test.fate != fine {
				e.restart("b") // whoever knew of the write is gone
			}
			if test.second != nil {
				until[WriteTarget](t, e)
				test.second(w)
				e.carry(fine)
			}
			if w.forbidden {
				e.waitsWhileForbidden(t)
			}
			e.finish(t)
			w.arriveAll()
			step := &w.plan.Status.Steps[0]
			got := fmt.Sprintf("%s %s, plan %s, %d writes", step.State, step.Reason, w.plan.Status.Phase, w.effects[0])
			if want := fmt.Sprintf("%s %s, plan %s, %d writes", test.state, test.reason, test.phase, test.wrote); got != want {
				t.Errorf("got %s, want %s; what happened:\n%q", got, want, step.Logs)
			}
			if w.broken != "" {
				t.Error(w.broken)
			}
		})
	}
}

func TestAScheduleThatClosesWhileAnswersTakeTheirTime(t *testing.T) {
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
	w.closesAt = epoch.Add(time.Minute)
	e := &executor{w: w, holder: "a"}
	until[WriteTarget](t, e)
	w.now = w.closesAt
	e.decide()
	if _, ok := e.pending.(Look); !ok {
		t.Fatalf("with a schedule that has closed since it was read comes %T", e.pending)
	}
	for range 100 {
		e.carry(fine)
		if e.waits != "" {
			break
		}
		e.decide()
	}
	if e.waits != "the window is closed" || w.effects[0] != 0 {
		t.Errorf("it waits for %q, and has written %d times", e.waits, w.effects[0])
	}
}

func TestAWriteThatIsRefusedAtOnceEndsAMinuteLater(t *testing.T) {
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
	e := &executor{w: w, holder: "a"}
	until[WriteTarget](t, e)
	intent := w.now
	w.forbidden = true
	e.finish(t)
	step := &w.plan.Status.Steps[0]
	if step.State != v1alpha1.StepSkipped || step.Reason != v1alpha1.ReasonNotAllowed || step.CompletionTime.Sub(intent) < outlived {
		t.Errorf("%s %s after %s: %q", step.State, step.Reason, step.CompletionTime.Sub(intent), step.Logs)
	}
}

// waitsWhileForbidden: nobody can fence, so nothing ends; then somebody may again.
func (e *executor) waitsWhileForbidden(t *testing.T) {
	t.Helper()
	for range 50 {
		e.decide()
		e.carry(fine)
		e.w.now = e.w.now.Add(poll)
	}
	if Final(e.w.plan.Status.Phase) || ended(&e.w.plan.Status.Steps[0]) {
		t.Errorf("it ends as %s although its write may still arrive", e.w.plan.Status.Steps[0].State)
	}
	e.w.forbidden = false
}

// finish carries the plan to its end; targets become ready once they were asked for.
func (e *executor) finish(t *testing.T) {
	t.Helper()
	for range 500 {
		e.decide()
		e.carry(fine)
		switch e.waits {
		case "":
		case "done":
			return
		default:
			e.w.now = e.w.now.Add(poll)
			for _, o := range e.w.objects {
				o.ready = true
			}
		}
	}
	t.Fatalf("it never ends: %q", e.waits)
}

func (w *world) arriveAll() {
	for _, r := range w.delayed {
		w.arrive(r)
	}
	w.delayed = nil
}
