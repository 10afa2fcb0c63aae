// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestAPlanWaitsForTheEndOfARun: the executor holds a plan for the baseline of a run, and the assessor
// makes none.
func TestAPlanWaitsForTheEndOfARun(t *testing.T) {
	startAssessor(t)
	w := newGuardedWorld(t, "alice")
	t.Cleanup(w.Forget) // the ledgers, once the executor has ended
	w.Rollouts()
	w.releasedBy("alice")
	startExecutor(t, untouched)
	w.SetImage(mallory, "web", remediation.EvilImage)
	w.Until("web", "the drift is told", func(b *v1alpha1.Baseline) error {
		if b.Status.Severity == nil || b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
	byHand := w.Policy()
	plan := w.Plan(byHand, "web")
	w.UntilPlan(plan, "the plan waits for the run", func(p *v1alpha1.RemediationPlan) bool {
		return strings.Contains(p.Status.DeferralReason, "RolloutUnderWay: run 3 of ABRelease web is under way")
	})
	byItself := w.PolicyBy(remediation.Platform, w.Name+"-itself", func(s *v1alpha1.RemediationPolicySpec) {
		s.Selector, s.Exceptions.ActiveWriter = nil, v1alpha1.Allowed
	})
	w.Eventually("the policy tells of the run", func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(byItself), byItself); err != nil {
			return err
		}
		if !strings.Contains(byItself.Status.WaitingFor, string(planner.ReasonRolloutUnderWay)) {
			return fmt.Errorf("it waits for %q", byItself.Status.WaitingFor)
		}
		return nil
	})
	if image := w.Live("web").Spec.Template.Spec.Containers[0].Image; image != remediation.EvilImage {
		t.Fatalf("the baseline was repaired in the run: it has %s", image)
	}
	w.run(3, "RolledBack")
	if ended := w.Ended(plan); ended.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan ended as %s", remediation.Describe(ended))
	}
	w.UntilIs("web", "InSync")
}

// TestAWorkWaitsForAPlanThatHoldsItsTarget, and goes on once the plan lets go.
func TestAWorkWaitsForAPlanThatHoldsItsTarget(t *testing.T) {
	startAssessor(t)
	w := newGuardedWorld(t, "alice")
	t.Cleanup(w.Forget)
	w.Deploy(guarded.CI, "api")
	w.UntilIs("api", "InSync")
	w.SetImage(mallory, "api", remediation.EvilImage)
	w.Until("api", "the drift is told", func(b *v1alpha1.Baseline) error {
		if b.Status.Severity == nil {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
	w.releasedBy("alice")
	startExecutor(t, untouched)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	w.run(3, "Promoting")

	// A plan that waits for a person does nothing by itself.
	plan := w.Plan(w.Policy(func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerManual }), "api")
	w.UntilPlan(plan, "the plan waits for a person", func(p *v1alpha1.RemediationPlan) bool { return p.Status.DeferralReason != "" })
	w.claim("web", plan.Name)
	work := w.ask(v1alpha1.WorkUpdateBaseline, nil)
	w.until(work, "waiting for the plan", func() bool { return work.Status.Reason == v1alpha1.WorkTargetClaimed })
	if !strings.Contains(work.Status.Message, plan.Name) {
		t.Errorf("the message is %q", work.Status.Message)
	}
	w.claim("web", "")
	w.ended(work, v1alpha1.WorkSucceeded, "")
}

// claim writes the claim of a Baseline, as the executor does.
func (w *world) claim(name, plan string) {
	w.t.Helper()
	executor, err := apiserver.As(config, remediation.ExecutorUser)
	w.Must(err)
	w.Eventually("the claim is stored", func() error {
		b, err := w.Baseline(name)
		if err != nil {
			return err
		}
		b.Status.PlanName = plan
		return executor.Status().Update(w.Ctx(), b)
	})
}
