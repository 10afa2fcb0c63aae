// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// newStandbyWorld has a target that is repaired while a standby answers its requests.
func newStandbyWorld() *world {
	w := newWorld(v1alpha1.ActionReconcile, [][]int32{{0}}, false)
	w.plan.Spec.Plan.Strategy = v1alpha1.StrategyBlueGreen
	return w
}

// passes lets time pass, in which pods become ready and proxies acknowledge.
func (w *world) passes() {
	w.now = w.now.Add(5 * time.Second)
	w.controllers()
	w.objects[0].ready = true
}

// finishes carries the plan to its end, and says what happened when it does not come there.
func finishes(t *testing.T, w *world, e *executor) {
	t.Helper()
	for range 4000 {
		e.decide()
		e.carry(fine)
		switch {
		case w.broken != "":
			t.Fatalf("%s; what happened: %q", w.broken, w.plan.Status.Steps[0].Logs)
		case e.waits == "done":
			return
		case e.waits != "":
			w.passes()
		}
	}
	t.Fatalf("the plan is %s, and waits because %q; what happened: %q", w.plan.Status.Phase, e.waits, w.plan.Status.Steps[0].Logs)
}

// leftNothing checks that a plan that has ended left no standby.
func leftNothing(t *testing.T, w *world) {
	t.Helper()
	step := &w.plan.Status.Steps[0]
	if w.objects[0].release != "" || w.objects[0].deployment != "" || step.Standby != nil && step.Standby.Phase != v1alpha1.StandbyRemoved {
		t.Errorf("left is %+v, and stored is %+v", w.objects[0].standby, step.Standby)
	}
}

func TestATargetIsRepairedWhileItsStandbyServes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		state  v1alpha1.StepState
		why    v1alpha1.StepReason
		wrote  int
	}{
		"and gets its requests back":             {func(*world) {}, v1alpha1.StepVerified, "", 1},
		"unless something stands against it":     {func(w *world) { w.objects[0].refuses = "SharedService: others" }, v1alpha1.StepSkipped, v1alpha1.ReasonNoStandby, 0},
		"unless its pods never become ready":     {func(w *world) { w.objects[0].dark = true }, v1alpha1.StepSkipped, v1alpha1.ReasonNoStandby, 0},
		"unless it is as it should be by itself": {func(w *world) { w.foreign(0, desiredHash) }, v1alpha1.StepSkipped, v1alpha1.ReasonAlreadyDesired, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStandbyWorld()
			test.change(w)
			finishes(t, w, &executor{w: w, holder: "a"})
			step := &w.plan.Status.Steps[0]
			if step.State != test.state || step.Reason != test.why || w.effects[0] != test.wrote {
				t.Errorf("the step is %s %s after %d writes: %q", step.State, step.Reason, w.effects[0], step.Logs)
			}
			leftNothing(t, w)
		})
	}
}

// blows strike between two effects of an executor. The next executor begins with what is stored.
var blows = map[string]func(*world){
	"nothing else":   func(*world) {},
	"a cancellation": func(w *world) { w.ask(v1alpha1.PlanCancel) },
	"a halt":         func(w *world) { w.halted = "the ledger is halted" },
	"a pause, and its end much later": func(w *world) {
		w.ask(v1alpha1.PlanPause)
	},
	"a window that closes for a while": func(w *world) { w.closed = "the window is closed" },
	"a change of the target":           func(w *world) { w.foreign(0, "pl1:other") },
	"a target that is gone":            func(w *world) { w.objects[0].exists = false },
	"another object of its name":       func(w *world) { w.replace(0) },
	"a policy that is gone":            func(w *world) { w.halted = "its policy is gone" },
}

// Each effect of a whole plan is one at which the executor dies: before the request is sent, after it
// was stored without an answer, or while the request is late.
func TestNoDeathLeavesRequestsWithoutPods(t *testing.T) {
	effects := 0
	for w, e := newStandbyWorld(), (*executor)(nil); e == nil || e.waits != "done"; effects++ {
		if e == nil {
			e = &executor{w: w, holder: "a"}
		}
		e.decide()
		e.carry(fine)
		if e.waits != "" {
			w.passes()
		}
	}
	if effects < 30 {
		t.Fatalf("a whole plan has only %d effects", effects)
	}
	for name, blow := range blows {
		for _, f := range []fate{unsent, unanswered, late} {
			t.Run(fmt.Sprint(name, ", fate ", f), func(t *testing.T) {
				for at := range effects {
					for _, arrives := range []arrival{soon, whenEnded, atLast} {
						diesAt(t, at, f, blow, arrives)
					}
				}
			})
		}
	}
}

// arrival is when a late request arrives.
type arrival int

const (
	soon arrival = iota
	// whenEnded is as soon as the plan has ended.
	whenEnded
	// atLast is when the next executor has had much time.
	atLast
)

func diesAt(t *testing.T, at int, f fate, blow func(*world), arrives arrival) {
	t.Helper()
	w := newStandbyWorld()
	e := &executor{w: w, holder: "a"}
	for range at {
		e.decide()
		e.carry(fine)
		if e.waits != "" {
			w.passes()
		}
	}
	e.decide()
	e.carry(f)
	blow(w)
	e.restart("b")
	if arrives == soon {
		w.lateArrives()
	}
	for range 200 {
		e.decide()
		e.carry(fine)
		if arrives == whenEnded && Final(w.plan.Status.Phase) {
			w.lateArrives()
		}
		if e.waits != "" {
			w.passes()
		}
	}
	leftNothing(t, w) // also when the plan waits
	w.lateArrives()
	w.closed = ""
	if w.plan.Spec.Control.Verb == v1alpha1.PlanPause {
		w.ask("")
	}
	finishes(t, w, e)
	leftNothing(t, w)
	if t.Failed() {
		t.Fatalf("it died at effect %d", at)
	}
}

// lateArrives has all requests arrive that are late.
func (w *world) lateArrives() {
	w.standbysArrive()
	for _, r := range w.delayed {
		w.arrive(r)
	}
	w.delayed = nil
}
