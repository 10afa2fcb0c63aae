// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// hasEnded says that a step is in a final state. An unknown state is none.
func hasEnded(state v1alpha1.StepState) bool {
	switch state {
	case v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
		return true
	case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
	}
	return false
}

// executionOf says whether a step that has ended wrote its target. A step that failed after its intent was
// stored, and was not fenced, may have written.
func executionOf(step *v1alpha1.PlanStep) v1alpha1.Execution {
	switch {
	case step.Result != nil, step.State == v1alpha1.StepVerified,
		step.State == v1alpha1.StepFailed && step.Intent != nil && step.Fence == "":
		return v1alpha1.ExecutionDone
	}
	return v1alpha1.ExecutionNone
}

// specOf returns what is assessed of a step that has ended. Policy is nil if it is gone.
func specOf(plan *v1alpha1.RemediationPlan, policy *v1alpha1.RemediationPolicySpec, step *v1alpha1.PlanStep) v1alpha1.EffectivenessAssessmentSpec {
	planned, target := &plan.Spec.Plan, &plan.Spec.Plan.Targets[step.Index]
	spec := v1alpha1.EffectivenessAssessmentSpec{
		Subject:       v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: plan.Name, UID: string(plan.UID), Step: step.Index}},
		Policy:        v1alpha1.AssessedPolicy{Name: planned.Policy.Name, UID: planned.Policy.UID},
		CorrelationID: planned.CorrelationID, RequestedBy: planned.Requester, Action: v1alpha1.AssessedAction(target.Action),
		Target:    v1alpha1.AssessedTarget{BaselineTarget: target.BaselineTarget, BaselineName: target.BaselineName, UID: target.UID},
		Signal:    v1alpha1.AssessedSignal{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name},
		DriftTime: target.FirstSeenTime, PreHash: target.DriftedHash,
		Execution: executionOf(step), Windows: windowsOf(policy),
	}
	if policy != nil {
		spec.Alerts, spec.Metrics = policy.Effectiveness.Alerts, policy.Effectiveness.Metrics
	}
	if i := step.Intent; i != nil {
		spec.PreHash, spec.WrittenTime = cmp.Or(i.PreHash, spec.PreHash), &i.StorageTime
	}
	spec.DDEM002 = ddem002Of(step)
	if r := step.Result; r != nil {
		spec.PostHash, spec.PostGeneration, spec.WrittenTime = r.Hash, r.Generation, &r.RecordTime
		spec.Target.UID = cmp.Or(r.UID, spec.Target.UID)
	}
	switch {
	case spec.Execution == v1alpha1.ExecutionNone:
		spec.WrittenTime = nil
	case spec.WrittenTime == nil: // of a version that did not store it
		spec.WrittenTime = cmp.Or(step.CompletionTime, &plan.CreationTimestamp)
	}
	return spec
}

// ddem002Of returns the hashes that the executor took for another system; nil if it took none.
func ddem002Of(step *v1alpha1.PlanStep) *v1alpha1.DDEM002Hashes {
	var hashes v1alpha1.DDEM002Hashes
	if step.Intent != nil {
		hashes.PreHash = step.Intent.DDEM002Hash
	}
	if step.Result != nil {
		hashes.PostHash = step.Result.DDEM002Hash
	}
	if hashes == (v1alpha1.DDEM002Hashes{}) {
		return nil
	}
	return &hashes
}

// windowsOf returns the windows of a policy.
func windowsOf(policy *v1alpha1.RemediationPolicySpec) v1alpha1.AssessmentWindows {
	if policy == nil {
		policy = &v1alpha1.RemediationPolicySpec{}
	}
	set, windows := policy.Effectiveness, effect.WindowsOfPolicy(policy)
	return v1alpha1.AssessmentWindows{
		Stabilization: &metav1.Duration{Duration: windows.Stabilization},
		Validity:      &metav1.Duration{Duration: windows.Validity},
		// Left out, they are no time at all.
		AlertCheckDelay: set.AlertCheckDelay, PropagationDelay: set.PropagationDelay,
	}
}

func durationOf(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
