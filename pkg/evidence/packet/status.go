// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// StatusOf returns the records that the status of a plan names: those of the steps that have ended, and those of
// the assessments whose verdict the plan has.
func StatusOf(p *v1alpha1.RemediationPlan) evidence.PlanStatus {
	status := evidence.PlanStatus{UID: string(p.UID), Chain: p.Spec.Plan.Policy.UID}
	for i := range p.Status.Steps {
		step := &p.Status.Steps[i]
		if step.Evidence != nil {
			status.Digests = append(status.Digests, step.Evidence.Digest)
		}
		if step.Effect != nil && step.Effect.Evidence != nil {
			status.Digests = append(status.Digests, step.Effect.Evidence.Digest)
		}
	}
	return status
}
