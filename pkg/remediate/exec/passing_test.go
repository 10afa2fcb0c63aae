// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// states are those of the step that were stored, one after the other.
func (w *world) states() *[]string {
	all := &[]string{}
	w.fails = func(call, _ string) error {
		if steps := w.now().Status.Steps; call == "update RemediationPlan" && len(steps) > 0 {
			*all = append(*all, string(steps[0].State))
		}
		return nil
	}
	return all
}

// One write of the status tells that a step has its place, and what it is about to write.
func TestTheGrantOfAStepIsStoredWithItsIntent(t *testing.T) {
	w := newWorld(t)
	states := w.states()
	w.finish()
	if slices.Contains(*states, string(v1alpha1.StepReserved)) || !slices.Contains(*states, string(v1alpha1.StepIntent)) {
		t.Errorf("the step was %s", strings.Join(*states, ", "))
	}
	step := w.now().Status.Steps[0]
	if w.now().Status.StartTime == nil || step.StartTime == nil || !strings.HasSuffix(step.Logs[0], " granted") {
		t.Errorf("the plan does not tell of the grant: %+v", step)
	}
}

// A step that has its place and has to wait says so: the status outlives the executor.
func TestTheGrantOfAStepIsStoredBeforeTheStepWaits(t *testing.T) {
	w := newWorld(t)
	w.bodies["web-4"] = "lost"
	if out := w.carry(); out.Until.IsZero() {
		t.Fatalf("the plan waits for %q", out.Why)
	}
	if status := w.now().Status; status.Phase != v1alpha1.PlanRunning || status.Steps[0].State != v1alpha1.StepReserved {
		t.Errorf("the plan is %s, and its step %s", status.Phase, status.Steps[0].State)
	}
}

// An executor may die after the grant, and no status tells of what it took. The next one finds the
// same place, or gives place and target back before it tells what the plan waits for.
func TestAnExecutorThatDiesBetweenGrantAndIntentLeavesNothing(t *testing.T) {
	tests := map[string]struct {
		closed bool
		want   v1alpha1.PlanPhase
	}{
		"the step goes on":     {false, v1alpha1.PlanSucceeded},
		"the plan has to wait": {true, v1alpha1.PlanDeferred},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fails = func(call, _ string) error {
				if steps := w.now().Status.Steps; call == "update RemediationPlan" && len(steps) > 0 {
					return errNetwork
				}
				return nil
			}
			if _, err := w.Carry(t.Context(), w.key()); err == nil {
				t.Fatal("the intent was stored")
			}
			if l := w.readLedgerNow("production"); len(l.Status.Entries) != 1 || w.now().Status.Steps[0].State != v1alpha1.StepPlanned {
				t.Fatalf("the step is %s, and the ledger has %+v", w.now().Status.Steps[0].State, l.Status.Entries)
			}
			w.fails = nil
			if test.closed {
				w.guards.frozen["web"] = "mass drift"
			}
			w.next()
			w.carry()
			if got := w.now().Status.Phase; got != test.want {
				t.Errorf("the plan is %s, want %s", got, test.want)
			}
			baseline := &v1alpha1.Baseline{}
			read(w, types.NamespacedName{Namespace: "shop", Name: w.plan.Spec.Plan.Targets[0].BaselineName}, baseline)
			open := 0
			for _, name := range []string{ClusterLedger, "production"} {
				for _, entry := range w.readLedgerNow(name).Status.Entries {
					if entry.CompletionTime == nil {
						open++
					}
				}
			}
			if open > 0 || baseline.Status.PlanName != "" {
				t.Errorf("%d places are left, and the target belongs to %q", open, baseline.Status.PlanName)
			}
		})
	}
}
