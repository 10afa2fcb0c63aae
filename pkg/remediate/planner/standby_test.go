// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func blueGreen(drifts ...Drift) *Input {
	in := input(drifts...)
	in.Policy.Spec.Strategy = v1alpha1.StrategyBlueGreen
	in.Policy.Spec.Standby = &v1alpha1.StandbyTemplate{PodLabels: map[string]v1alpha1.LabelValue{"app": "standby"}}
	in.Policy.Spec.Exceptions.Recreate = v1alpha1.Allowed
	return in
}

func TestOnlyADeploymentGetsAStandby(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Drift)
		want   Reason
	}{
		"a Deployment":                             {func(*Drift) {}, ""},
		"a Deployment that is gone is made anew":   {func(d *Drift) { d.State, d.Recreation.Allowed = v1alpha1.StateMissing, true }, ""},
		"a StatefulSet":                            {func(d *Drift) { d.Target.Kind = "StatefulSet" }, ReasonNotApplicable},
		"a kind of the same name in another group": {func(d *Drift) { d.Target.APIVersion = "shop.example/v1" }, ReasonNotApplicable},
	} {
		t.Run(name, func(t *testing.T) {
			d := drift("web")
			tc.change(&d)
			in := blueGreen(d)
			if got := ObstacleTo(in, &in.Drifts[0]); got.Reason != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestAPlanOfStandbysWorksOnOneTargetAfterTheOther(t *testing.T) {
	in := blueGreen(drift("web"), drift("api"))
	in.Scope.Selected = 100
	plans := Make(in).Plans
	if len(plans) != 1 || len(plans[0].Targets) != 2 || len(plans[0].Batches) != 2 || plans[0].Strategy != v1alpha1.StrategyBlueGreen {
		t.Fatalf("got %+v", plans)
	}
	if diff := cmp.Diff(in.Policy.Spec.Standby, plans[0].Standby); diff != "" {
		t.Errorf("the plan's standby (-policy +plan):\n%s", diff)
	}
	if plans[0].Standby == in.Policy.Spec.Standby {
		t.Error("the plan shares the settings of its policy")
	}
}
