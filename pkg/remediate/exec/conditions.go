// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// setConditions says in the terms of kstatus how far a plan is: it reconciles
// until it has ended, is ready when it succeeded, and stalled when it did not.
func setConditions(plan *v1alpha1.RemediationPlan, now time.Time) {
	status := &plan.Status
	final := protocol.Final(status.Phase)
	succeeded := status.Phase == v1alpha1.PlanSucceeded
	reason := cmp.Or(string(status.Phase), "NotBegun")
	message := cmp.Or(status.DeferralReason, status.EndedReason, "the plan is "+string(status.Phase))
	set := func(kind string, holds bool) {
		if !holds && kind != v1alpha1.ConditionReady {
			meta.RemoveStatusCondition(&status.Conditions, kind)
			return
		}
		value := metav1.ConditionFalse
		if holds {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message,
			ObservedGeneration: plan.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	set(v1alpha1.ConditionReady, succeeded)
	set(v1alpha1.ConditionReconciling, !final)
	set(v1alpha1.ConditionStalled, final && !succeeded)
	if meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAnnounced) == nil {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionAnnounced, Status: metav1.ConditionFalse, Reason: "NotEnded", Message: "the plan has not ended yet",
			ObservedGeneration: plan.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}
