// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
)

func TestTheConditionsOfAPlanSayHowFarItIs(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(epoch),
		}
	}
	both := func(ready metav1.ConditionStatus, second, reason, message string) []metav1.Condition {
		out := []metav1.Condition{condition(v1alpha1.ConditionReady, ready, reason, message)}
		if second != "" {
			out = append(out, condition(second, metav1.ConditionTrue, reason, message))
		}
		return append(out, condition(v1alpha1.ConditionAnnounced, metav1.ConditionFalse, "NotEnded", "the plan has not ended yet"))
	}
	tests := map[string]struct {
		status v1alpha1.RemediationPlanStatus
		want   []metav1.Condition
	}{
		"a plan that has not begun reconciles":    {v1alpha1.RemediationPlanStatus{}, both(metav1.ConditionFalse, v1alpha1.ConditionReconciling, "NotBegun", "the plan is ")},
		"a plan that runs reconciles":             {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}, both(metav1.ConditionFalse, v1alpha1.ConditionReconciling, "Running", "the plan is Running")},
		"a plan that waits says what for":         {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred, DeferralReason: "the window is closed"}, both(metav1.ConditionFalse, v1alpha1.ConditionReconciling, "Deferred", "the window is closed")},
		"a plan that succeeded is ready":          {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded}, both(metav1.ConditionTrue, "", "Succeeded", "the plan is Succeeded")},
		"a plan that failed is stalled":           {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanFailed}, both(metav1.ConditionFalse, v1alpha1.ConditionStalled, "Failed", "the plan is Failed")},
		"a plan that was canceled says why it is": {v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCanceled, EndedReason: "an incident"}, both(metav1.ConditionFalse, v1alpha1.ConditionStalled, "Canceled", "an incident")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Status: test.status}
			setConditions(plan, epoch)
			if diff := cmp.Diff(test.want, plan.Status.Conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConditionThatHoldsNoMoreGoes(t *testing.T) {
	plan := &v1alpha1.RemediationPlan{}
	plan.Status.Phase = v1alpha1.PlanRunning
	setConditions(plan, epoch)
	plan.Status.Phase = v1alpha1.PlanSucceeded
	setConditions(plan, epoch.Add(time.Minute))
	if len(plan.Status.Conditions) != 2 {
		t.Errorf("conditions of a plan that succeeded: %+v", plan.Status.Conditions)
	}
}

func TestAPlanAlwaysHasItsConditions(t *testing.T) {
	for _, phase := range []v1alpha1.PlanPhase{"", v1alpha1.PlanDeferred, v1alpha1.PlanRunning, v1alpha1.PlanSucceeded, v1alpha1.PlanFailed, v1alpha1.PlanCanceled} {
		t.Run("in phase "+string(phase), func(t *testing.T) {
			plan := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			plan.Status.Phase = phase
			setConditions(plan, epoch)
			conditions.CheckAlways(t, plan.Status.Conditions, 2, v1alpha1.ConditionReady, v1alpha1.ConditionAnnounced)
		})
	}
}
