// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// planOf names the plan that has a drift.
func planOf(in *planner.Input, d *planner.Drift) string {
	if d.Claim != "" {
		return d.Claim
	}
	if p := ownPlanOf(in, d); p != nil {
		return p.Name
	}
	return ""
}

// ownPlanOf returns the plan of the policy that has a drift; nil when none does.
func ownPlanOf(in *planner.Input, d *planner.Drift) *v1alpha1.RemediationPlan {
	for i := range in.UnderWay {
		p := &in.UnderWay[i]
		for j := range p.Spec.Plan.Targets {
			if p.Namespace == d.Namespace && p.Spec.Plan.Targets[j].BaselineName == d.Baseline {
				return p
			}
		}
	}
	return nil
}

// command returns what a person runs where that is the only way on: to execute a plan that
// waits, or to request what the policy leaves to people.
func command(in *planner.Input, d *planner.Drift, e *Explanation) string {
	if p := ownPlanOf(in, d); p != nil && waits(p) {
		return planner.ExecuteCommand(p.Namespace, p.Name)
	}
	if e.Verdict == NeverUnless && planner.RequestPasses(in, d) {
		return planner.RemediateCommand(in.Policy.Name, d)
	}
	return ""
}

// waits says that a plan has not begun, and waits for a person.
func waits(p *v1alpha1.RemediationPlan) bool {
	return planner.WaitsForPerson(&p.Spec.Plan) && p.Status.StartTime == nil && p.Spec.Control.Verb != v1alpha1.PlanExecute
}
