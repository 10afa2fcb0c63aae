// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"errors"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// nightly has a policy act in a window that opens in some hours.
func nightly(s *v1alpha1.RemediationPolicySpec) {
	opens := time.Now().UTC().Add(3 * time.Hour)
	s.Trigger, s.Exceptions.ActiveWriter = v1alpha1.TriggerScheduled, v1alpha1.Allowed
	s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: opens.Format("15:04"), End: opens.Add(time.Hour).Format("15:04"), TimeZone: "UTC"}
}

// planOfPolicy waits until a policy has one plan, and returns that plan.
func (w *world) planOfPolicy(policy *v1alpha1.RemediationPolicy) *v1alpha1.RemediationPlan {
	w.t.Helper()
	var found *v1alpha1.RemediationPlan
	w.Eventually("policy "+policy.Name+" has a plan", func() error {
		for _, p := range w.plans() {
			if p.Spec.Plan.Policy.Name == policy.Name {
				found = p.DeepCopy()
			}
		}
		if found == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return found
}

// D16 of the review of remediation: the plan of a nightly policy held its target for hours,
// and an Immediate policy waited with critical drift until the window had opened.
func TestANightlyPolicyHoldsNoDriftBackFromAnImmediateOne(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	startExecutor(t, newEvidence(t))
	slow := w.policyBy(platform, w.Name+"-nightly", nightly)
	waits := w.UntilPlan(w.planOfPolicy(slow), "the plan of the nightly policy waits for its window", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Phase == v1alpha1.PlanScheduled
	})
	if b, err := w.Baseline("web"); err != nil || b.Status.PlanName != "" {
		t.Errorf("the plan that waits claims its target as %q, %v", b.Status.PlanName, err)
	}
	quick := w.policyBy(platform, w.Name+"-immediate", busyWriters, func(s *v1alpha1.RemediationPolicySpec) {
		s.MinimumSeverity = v1alpha1.SeverityHigh
	})
	if ended := w.Ended(w.planOfPolicy(quick)); ended.Status.Phase != v1alpha1.PlanSucceeded || imageOf(w.Live("web")) != guarded.Image {
		t.Errorf("the plan of the immediate policy is %s", remediation.Describe(ended))
	}
	if still := w.UntilPlan(waits, "the plan of the nightly policy is there", func(*v1alpha1.RemediationPlan) bool { return true }); len(still.Status.Steps) > 0 && still.Status.Steps[0].Intent != nil {
		t.Errorf("the nightly plan is %s", remediation.Describe(still))
	}
}
