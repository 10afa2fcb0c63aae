// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// Assessed implements exec.Observer.
func (o *Observer) Assessed(plan *v1alpha1.RemediationPlan, index int32, is *v1alpha1.StepEffect) {
	planned, target := &plan.Spec.Plan, &plan.Spec.Plan.Targets[index]
	o.Log.Info("remediation.target.assessed", "event", "remediation.target.assessed",
		"plan_id", string(plan.UID), "plan", plan.Namespace+"/"+plan.Name, "policy", planned.Policy.Name,
		"target_id", target.UID, "target", target.Kind+" "+plan.Namespace+"/"+target.Name, "step", index,
		"environment", planned.EnvironmentName, "action", telemetry.SpellWord(string(target.Action)), "verdict", telemetry.SpellWord(string(is.Verdict)),
		"assessment", is.AssessmentName, "correlation_id", planned.CorrelationID, "drift_report_id", planned.DriftReportID)
	if !helpedNot(is.Verdict) {
		return
	}
	object := &corev1.ObjectReference{
		APIVersion: target.APIVersion, Kind: target.Kind, Namespace: plan.Namespace, Name: target.Name,
		UID: types.UID(cmp.Or(writtenUID(plan, index), target.UID)),
	}
	o.Recorder.Eventf(object, plan, corev1.EventTypeWarning, "Remediation"+string(is.Verdict), string(target.Action), "%s",
		noted("plan "+plan.Name+": "+describeEffect(is)))
	o.tellEffect(plan, index, is)
}

// helpedNot says that people are told of a verdict.
func helpedNot(verdict v1alpha1.EffectVerdict) bool {
	switch verdict {
	case v1alpha1.VerdictIneffective, v1alpha1.VerdictInvalidated:
		return true
	case v1alpha1.VerdictEffective, v1alpha1.VerdictInconclusive:
	}
	return false
}

// writtenUID is the uid of the target after the write; empty where it is not known.
func writtenUID(plan *v1alpha1.RemediationPlan, index int32) string {
	if int(index) < len(plan.Status.Steps) && plan.Status.Steps[index].Result != nil {
		return plan.Status.Steps[index].Result.UID
	}
	return ""
}

// describeEffect says for people what an assessment came to.
func describeEffect(is *v1alpha1.StepEffect) string {
	words := "the write did not help"
	if is.Verdict == v1alpha1.VerdictInvalidated {
		words = "another writer undid the write, or changed the target again"
	}
	if is.Score != nil {
		words += fmt.Sprintf(": %d of %d", *is.Score, effect.Best)
	}
	return words + " (assessment " + is.AssessmentName + ")"
}

// tellEffect hands the verdict on one step to the channels of the policy.
func (o *Observer) tellEffect(plan *v1alpha1.RemediationPlan, index int32, is *v1alpha1.StepEffect) {
	if o.Notify == nil {
		return
	}
	var policy v1alpha1.RemediationPolicy
	if err := o.Policies.Get(context.Background(), types.NamespacedName{Name: plan.Spec.Plan.Policy.Name}, &policy); err != nil {
		return
	}
	e, target := NotificationOf(plan, notify.PlanIneffective, o.Time.Now()), &plan.Spec.Plan.Targets[index]
	e.Transition, e.Severity, e.Reason = "step-"+strconv.Itoa(int(index)), target.Severity.Level, describeEffect(is)
	e.Targets = []notify.Target{{Kind: target.Kind, Namespace: plan.Namespace, Name: target.Name, Reason: string(is.Verdict)}}
	o.Notify(&policy, e)
}

// endedAssessments are assessments that have a verdict, or never will.
func endedAssessments() predicate.Predicate {
	ended := func(o client.Object) bool {
		a, ok := o.(*v1alpha1.EffectivenessAssessment)
		return ok && effect.Phase(a.Status.Phase).Ended()
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return ended(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return ended(e.ObjectNew) && !ended(e.ObjectOld) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofAssessment wakes the plan of an assessment, unless the plan has the verdict.
func (r *Reconciler) ofAssessment(ctx context.Context, assessment client.Object) []Turn {
	a, ok := assessment.(*v1alpha1.EffectivenessAssessment)
	if !ok || a.Spec.Subject.Plan == nil {
		return nil
	}
	subject := a.Spec.Subject.Plan
	key := types.NamespacedName{Namespace: a.Namespace, Name: subject.Name}
	var plan v1alpha1.RemediationPlan
	if err := r.Cached.Get(ctx, key, &plan); err == nil && protocol.Final(plan.Status.Phase) &&
		int(subject.Step) < len(plan.Status.Steps) && plan.Status.Steps[subject.Step].Effect != nil {
		return nil
	}
	return []Turn{{Request: reconcile.Request{NamespacedName: key}}}
}
