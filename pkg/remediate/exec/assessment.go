// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"context"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/printable"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// recordAssessment writes the signed record of the assessment of a step.
func (r *run) recordAssessment(ctx context.Context, step int32) (protocol.Answer, *v1alpha1.StepEvidence) {
	at, err := r.note(ctx, r.assessmentRecord(step))
	if err != nil {
		return protocol.Unknown, nil
	}
	return protocol.Yes, new(named(at))
}

// assessmentRecord says what an assessment came to. All of it comes from what is stored. The messages
// and side effects of an assessment, and the names and values of metrics and alerts, are left out.
func (r *run) assessmentRecord(index int32) evidence.Record {
	a, step, target := r.material(index).assessment, &r.plan.Status.Steps[index], r.target(index)
	record := r.common(evidence.KindAssessment, timeOf(cmp.Or(a.Status.CompletionTime, step.CompletionTime)))
	record.Subject = evidence.Subject{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: r.plan.Namespace, Name: target.Name,
		UID:  cmp.Or(a.Spec.Target.UID, target.UID, string(r.plan.UID)),
		Hash: cmp.Or(a.Status.CurrentHash, a.Spec.PostHash, a.Spec.PreHash, target.DriftedHash),
	}
	record.Step = &evidence.Step{Index: index, Action: string(target.Action), StartedAt: timeOf(step.StartTime)}
	record.Result = evidence.Result{State: string(a.Status.Phase), At: record.At}
	record.Assessment = &evidence.Assessment{
		Name: a.Name, UID: string(a.UID), Reason: printable.SnakeCase(string(a.Status.Reason)), Verdict: string(verdictOf(a)),
		Score: a.Status.Score, Formula: a.Status.Formula, Integrity: string(a.Status.Integrity),
		PreHash: a.Spec.PreHash, PostHash: a.Spec.PostHash, CurrentHash: a.Status.CurrentHash, WrittenAt: timeOf(a.Spec.WrittenTime),
	}
	for i := range a.Status.Components {
		c := &a.Status.Components[i]
		record.Assessment.Components = append(record.Assessment.Components, evidence.AssessedComponent{
			Name: string(c.Name), State: string(c.State), Effect: string(c.Effect), Score: c.Score,
		})
	}
	return record
}

// verdictOf returns the verdict of an assessment that has ended. An assessment that failed says nothing.
func verdictOf(a *v1alpha1.EffectivenessAssessment) v1alpha1.EffectVerdict {
	return cmp.Or(a.Status.Verdict, v1alpha1.VerdictInconclusive)
}
