// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestARequestToLiftIsJudgedByItsQuarantine(t *testing.T) {
	const token = "plan-0"
	for name, tc := range map[string]struct {
		change  func(*v1alpha1.Baseline)
		deleted bool
		want    LiftOutcome
	}{
		"the assessor has not answered":      {},
		"the quarantine has ended":           {change: func(b *v1alpha1.Baseline) { b.Status.Quarantine = nil }, want: LiftOutcome{Progress: Taken}},
		"another one is in force":            {change: func(b *v1alpha1.Baseline) { b.Status.Quarantine.Token = "plan-1" }, want: LiftOutcome{Progress: Taken}},
		"the Baseline is gone":               {deleted: true, want: LiftOutcome{Progress: Taken}},
		"it is cleared, and nothing is told": {change: func(b *v1alpha1.Baseline) { b.Spec.Lift, b.Generation = nil, 2 }},
		"it is cleared": {change: func(b *v1alpha1.Baseline) { b.Spec.Lift = nil }, want: LiftOutcome{
			Progress: Refused, Message: "another request took the place of this one",
		}},
		"a guard refuses it": {change: func(b *v1alpha1.Baseline) {
			b.Spec.Lift = nil
			b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAcceptanceAllowed, Status: metav1.ConditionFalse, Message: "bob may not lift the quarantine"}}
		}, want: LiftOutcome{Progress: Refused, Message: "bob may not lift the quarantine"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.Baseline{
				ObjectMeta: metav1.ObjectMeta{Generation: 1},
				Spec:       v1alpha1.BaselineSpec{Lift: &v1alpha1.LiftRequest{Token: token}},
				Status:     v1alpha1.BaselineStatus{ObservedGeneration: 1, Quarantine: &v1alpha1.Quarantine{Token: token}},
			}
			if tc.change != nil {
				tc.change(b)
			}
			if d := cmp.Diff(tc.want, JudgeLift(b, token, tc.deleted)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
