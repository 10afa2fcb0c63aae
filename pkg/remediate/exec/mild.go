// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// mild says why the policy does not put the drift of a step back by itself any more, by the
// severity that the Baseline has now; empty when the policy does. The severity counts for the
// drift of the plan alone.
func (r *run) mild(step int32, baseline *v1alpha1.Baseline) string {
	target := r.target(step)
	if baseline == nil || baseline.Status.Severity == nil || baseline.Status.Observed.Hash != target.DriftedHash || !r.byItself() {
		return ""
	}
	return planner.Mild(&r.policy.Spec, &target.Severity, baseline.Status.Severity, target.FirstSeenTime.Time, r.Time.Now()).Message
}

// byItself says that the policy made the plan, and that the plan waits for no person.
func (r *run) byItself() bool {
	plan := &r.plan.Spec.Plan
	return r.policy != nil && plan.InitiatedBy == planner.InitiatedByItself && plan.Trigger != v1alpha1.TriggerManual
}
