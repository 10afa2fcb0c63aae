// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestWhatHoldsAQuarantineBack(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Drift)
		action v1alpha1.RemediationAction
		want   Reason
	}{
		"nothing does":                             {},
		"an object that is gone":                   {change: func(d *Drift) { d.State, d.Recreation.Allowed = v1alpha1.StateMissing, true }, want: ReasonNotApplicable},
		"a kind without pods":                      {change: func(d *Drift) { d.Target.APIVersion, d.Target.Kind = "v1", "ConfigMap" }, want: ReasonNotApplicable},
		"a kind of the same name in another group": {change: func(d *Drift) { d.Target.APIVersion = "shop.example/v1" }, want: ReasonNotApplicable},
		"a StatefulSet has pods":                   {change: func(d *Drift) { d.Target.Kind = "StatefulSet" }},
		"a quarantine that is in force":            {change: func(d *Drift) { d.QuarantinedBy = "RemediationPlan/p" }, want: ReasonQuarantined},
		"a person who lifted one for this drift":   {change: func(d *Drift) { d.LiftedBy = "alice" }, want: ReasonDone},
		"a run of a release":                       {change: func(d *Drift) { d.Rollout = "run 3 of shop/pay" }, want: ReasonRolloutUnderWay},
		"a repair goes on in a quarantine":         {change: func(d *Drift) { d.QuarantinedBy = "RemediationPlan/p" }, action: v1alpha1.ActionReconcile},
		"and after one that was lifted":            {change: func(d *Drift) { d.LiftedBy = "alice" }, action: v1alpha1.ActionReconcile},
	} {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			if tc.change != nil {
				tc.change(&d)
			}
			in := input(d)
			in.Policy.Spec.Action, in.Policy.Spec.Exceptions.Recreate = v1alpha1.ActionQuarantine, v1alpha1.Allowed
			if tc.action != "" {
				in.Policy.Spec.Action = tc.action
			}
			if got := ObstacleTo(in, &in.Drifts[0]); got.Reason != tc.want {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}
