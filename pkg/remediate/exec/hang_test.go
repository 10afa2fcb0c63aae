// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// control is what a person asks of the plan.
func (w *world) control(verb v1alpha1.PlanVerb) {
	w.Helper()
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		p.Generation++
		p.Spec.Control = v1alpha1.PlanControl{Verb: verb, RequestedBy: "alice", Reason: "an incident"}
	})
}

// braking are all brakes of people, and what the status says of each once it holds.
var braking = map[string]struct {
	put     func(*world)
	ends    v1alpha1.PlanPhase
	endedBy string
	message string
}{
	"a pause":               {func(w *world) { w.control(v1alpha1.PlanPause) }, v1alpha1.PlanPaused, "alice", "an incident"},
	"a cancellation":        {func(w *world) { w.control(v1alpha1.PlanCancel) }, v1alpha1.PlanCanceled, "alice", "an incident"},
	"a halt of the ledger":  {func(w *world) { haltLedger(w, "production") }, v1alpha1.PlanCanceled, "alice", "an incident"},
	"a halt of the cluster": {func(w *world) { haltLedger(w, ClusterLedger) }, v1alpha1.PlanCanceled, "alice", "an incident"},
	"a halt of the policy": {func(w *world) {
		w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
			p.Spec.Mode, p.Spec.RequestedBy = v1alpha1.PolicyModeHalted, "bob"
		})
	}, v1alpha1.PlanCanceled, "bob", "its policy is halted"},
}

// D10 of the review of remediation: Pause, Cancel and Halt of every plan hung behind a
// store that accepted connections and never answered.
func TestAStoreThatHangsStopsNoBrake(t *testing.T) {
	for name, brake := range braking {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.granted = func() {
				brake.put(w)
				w.records.hangs = func(call string) error {
					if status := w.now().Status; status.Phase != v1alpha1.PlanSealing {
						t.Errorf("the store is asked to %s while the plan is %s, and the brake is on", call, status.Phase)
					}
					return context.DeadlineExceeded
				}
			}
			w.carryAgain()
			status := w.now().Status
			if status.Phase != v1alpha1.PlanSealing || status.EndingAs != brake.ends || status.EndedBy != brake.endedBy || status.EndedReason != brake.message {
				t.Errorf("the plan is %s, to become %s, by %s: %q", status.Phase, status.EndingAs, status.EndedBy, status.EndedReason)
			}
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReconciling)
			if c == nil || c.Reason != "Sealing" || !strings.Contains(c.Message, "record") {
				t.Errorf("the condition says %+v", c)
			}
			if len(w.targets.stored) > 0 || status.Steps[0].Intent != nil {
				t.Errorf("stored are %v, the step is %s", w.targets.stored, status.Steps[0].State)
			}

			w.records.hangs = nil
			w.carryAgain()
			if status := w.now().Status; status.Phase != brake.ends || status.DeferralReason != "" {
				t.Errorf("with records the plan is %s: %q", status.Phase, status.DeferralReason)
			}
		})
	}
}

// carryAgain carries the plan on for a few minutes, whatever fails.
func (w *world) carryAgain() {
	w.Helper()
	for range 10 {
		if out, err := w.Carry(w.Context(), w.key()); err == nil && out.Done {
			return
		}
		w.clock.now = w.clock.now.Add(explained / 2)
	}
}
