// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// sameButCounts says that two statuses of a policy differ in nothing that the executor decides
// by, and in no condition: at most in counts, in the names of plans, and in texts.
func sameButCounts(safety *v1alpha1.RemediationSafety, a, b *v1alpha1.RemediationPolicyStatus) bool {
	if ill(safety, a) != ill(safety, b) {
		return false
	}
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*v1alpha1.RemediationPolicyStatus{x, y} {
		s.Targets.Drifted, s.Targets.Eligible, s.Targets.Healthy = 0, 0, 0
		s.LastPlanName, s.WaitingFor, s.NextEvaluationTime = "", "", nil
		for i := range s.Conditions {
			s.Conditions[i].Message = ""
		}
	}
	return equality.Semantic.DeepEqual(x, y)
}

// ill says that too few of the other objects of a policy are healthy for a step to begin.
func ill(safety *v1alpha1.RemediationSafety, s *v1alpha1.RemediationPolicyStatus) bool {
	return planner.Health(safety, int(s.Targets.Healthy), int(s.Targets.Unhealthy)).Reason != ""
}
