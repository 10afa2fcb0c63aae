// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAQuarantineEndsWhen(t *testing.T) {
	const token = "plan-0"
	lift := func(token, by string) *v1alpha1.LiftRequest {
		return &v1alpha1.LiftRequest{Token: token, RequestedBy: by}
	}
	w := newWorld(t)
	w.guard("limited", testGuardSpec(), testNow)
	w.guards[0], _ = w.guards[0].WithAcceptBy(&v1alpha1.Writers{Users: []string{"alice"}})
	w.rule()
	limited := w.rules
	for name, tc := range map[string]struct {
		change func(*v1alpha1.BaselineStatus)
		lift   *v1alpha1.LiftRequest
		rules  Rules
		want   v1alpha1.QuarantineEnd
		by     string
	}{
		"nothing has changed, and it stays": {},
		"there is none":                     {change: func(s *v1alpha1.BaselineStatus) { s.Quarantine, s.State = nil, v1alpha1.StateInSync }},
		"the object is in sync":             {change: func(s *v1alpha1.BaselineStatus) { s.State = v1alpha1.StateInSync }, want: v1alpha1.QuarantineInSync},
		"the object is missing":             {change: func(s *v1alpha1.BaselineStatus) { s.State = v1alpha1.StateMissing }, want: v1alpha1.QuarantineGone},
		"the object is retired":             {change: func(s *v1alpha1.BaselineStatus) { s.State = v1alpha1.StateRetired }, want: v1alpha1.QuarantineGone},
		"no guard selects it":               {change: func(s *v1alpha1.BaselineStatus) { s.State = v1alpha1.StateNotGuarded }, want: v1alpha1.QuarantineNotGuarded},
		"another object has its name":       {change: func(s *v1alpha1.BaselineStatus) { s.Observed.UID = "other" }, want: v1alpha1.QuarantineReplaced},
		"another drift does not end it":     {change: func(s *v1alpha1.BaselineStatus) { s.Observed.Hash = "pl1:other" }},
		"an unknown state does not end it":  {change: func(s *v1alpha1.BaselineStatus) { s.State = v1alpha1.StateUnknown }},
		"a large state is accepted": {change: func(s *v1alpha1.BaselineStatus) {
			s.State, s.Oversized = v1alpha1.StateUnknown, &v1alpha1.OversizedBody{Hash: s.Observed.Hash}
		}, want: v1alpha1.QuarantineAccepted},
		"a large state of before does not end it": {change: func(s *v1alpha1.BaselineStatus) {
			s.State, s.Oversized = v1alpha1.StateUnknown, &v1alpha1.OversizedBody{Hash: "pl1:before"}
		}},
		"a person lifts it":                          {lift: lift(token, "bob"), want: v1alpha1.QuarantineLifted, by: "bob"},
		"a person lifts one of before, and it stays": {lift: lift("plan-1", "bob")},
		"a guard lets the person accept":             {lift: lift(token, "alice"), rules: limited, want: v1alpha1.QuarantineLifted, by: "alice"},
		"a guard does not let them, and it stays":    {lift: lift(token, "bob"), rules: limited},
		"in sync comes before the person":            {lift: lift(token, "bob"), change: func(s *v1alpha1.BaselineStatus) { s.State = v1alpha1.StateInSync }, want: v1alpha1.QuarantineInSync},
	} {
		t.Run(name, func(t *testing.T) {
			status := v1alpha1.BaselineStatus{
				State: v1alpha1.StateDrifted, Observed: v1alpha1.ObservedState{UID: "uid", Hash: "pl1:drifted"},
				Quarantine: &v1alpha1.Quarantine{UID: "uid", Token: token, By: "RemediationPlan/p"},
			}
			if tc.change != nil {
				tc.change(&status)
			}
			var want *v1alpha1.EndedQuarantine
			if tc.want != "" {
				want = &v1alpha1.EndedQuarantine{Token: token, EndTime: metav1.NewTime(testNow), Reason: tc.want, By: tc.by}
			}
			if d := cmp.Diff(want, JudgeQuarantine(&status, tc.lift, tc.rules, testNow)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
