// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// A budget that allows no disruption holds back a repair that would remove ready pods.
func TestARepairWaitsForAPodDisruptionBudget(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.recreated()
	budget := w.budget()
	w.drifted()
	plan := w.plan(w.policy(selectsNothing), "web")
	startExecutor(t, newEvidence(t))
	w.UntilPlan(plan, "it waits for the budget", func(p *v1alpha1.RemediationPlan) bool {
		return strings.HasPrefix(p.Status.DeferralReason, "PodDisruptionBudget all allows no disruption now") && p.Status.ResumeTime != nil
	})
	if imageOf(w.Live("web")) == guarded.Image {
		t.Error("the target was written")
	}
	w.allows(budget, 1)
	w.wake(plan)
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("when a disruption is allowed the plan is %s", remediation.Describe(plan))
	}
}

// A tenant who may write budgets held back the repair of a drift for ever.
func TestAHostilePodDisruptionBudgetHoldsNoRepairBack(t *testing.T) {
	startAssessor(t)
	startExecutor(t, newEvidence(t))
	tests := map[string]struct {
		// attack makes the budget, and says in the target when the drift was first seen.
		attack func(*world, *v1alpha1.PlanTarget)
		urgent v1alpha1.Permission
	}{
		"that was made after the drift": {
			attack: func(w *world, target *v1alpha1.PlanTarget) {
				target.FirstSeenTime = metav1.NewTime(w.budget().CreationTimestamp.Add(-time.Second))
			},
			urgent: v1alpha1.Forbidden,
		},
		"that was changed after the drift": {
			attack: func(w *world, target *v1alpha1.PlanTarget) {
				budget := w.budget()
				target.FirstSeenTime = budget.CreationTimestamp
				w.changeAfter(budget, target.FirstSeenTime.Time)
			},
			urgent: v1alpha1.Forbidden,
		},
		"and an urgent target": {
			attack: func(w *world, target *v1alpha1.PlanTarget) {
				target.FirstSeenTime, target.Severity.Urgency = w.budget().CreationTimestamp, v1alpha1.UrgencyImmediate
			},
			urgent: v1alpha1.Allowed,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.recreated()
			w.drifted()
			policy := w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.Schedule.Urgent = test.urgent })
			plan := w.Ended(w.plan(policy, "web", func(target *v1alpha1.PlanTarget) { test.attack(w, target) }))
			if plan.Status.Phase != v1alpha1.PlanSucceeded {
				t.Errorf("the plan is %s", remediation.Describe(plan))
			}
		})
	}
}

// recreated deploys web so that each rollout removes its pods first.
func (w *world) recreated() {
	w.t.Helper()
	w.Rollouts()
	w.UnderGuard()
	d := guarded.Deployment(w.Name, "web")
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	w.Must(w.As(ci).Create(w.t.Context(), d))
	w.UntilIs("web", "InSync")
}

// drifted has the tenant change web.
func (w *world) drifted() {
	w.t.Helper()
	w.SetImage(mallory, "web", remediation.EvilImage)
	w.Until("web", "the drift is told", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted || b.Status.Severity == nil {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
}

// budget has the tenant make a budget of all pods, which allows no disruption.
func (w *world) budget() *policyv1.PodDisruptionBudget {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "all"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
	}
	w.Must(w.As(mallory).Create(w.t.Context(), budget))
	w.allows(budget, 0)
	return budget
}

// changeAfter has the tenant change the spec of a budget in a later second.
func (w *world) changeAfter(budget *policyv1.PodDisruptionBudget, at time.Time) {
	w.t.Helper()
	pods := intstr.FromInt32(0)
	w.Eventually("the budget is changed later", func() error {
		pods.IntVal++
		budget.Spec.MinAvailable = &pods
		if err := w.As(mallory).Update(w.t.Context(), budget); err != nil {
			return err
		}
		for _, entry := range budget.ManagedFields {
			if entry.Subresource == "" && entry.Time.After(at) {
				return nil
			}
		}
		return fmt.Errorf("it was changed at %s", at)
	})
	w.allows(budget, 0)
}

// allows is what the controller of budgets writes about four ready pods.
func (w *world) allows(budget *policyv1.PodDisruptionBudget, disruptions int32) {
	w.t.Helper()
	budget.Status.ObservedGeneration, budget.Status.ExpectedPods, budget.Status.DisruptionsAllowed = budget.Generation, 4, disruptions
	w.Must(admin.Status().Update(w.t.Context(), budget))
}
