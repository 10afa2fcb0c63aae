// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// D8 of the review of remediation: a plan that had waited wrote while none of the other
// objects was healthy.
func TestAPlanWaitsUntilEnoughOfTheOthersAreHealthy(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // and no Deployment becomes ready
	w.crowd(4)
	w.Drifted("web")
	policy := w.policy()
	w.untilCounted(policy, func(n v1alpha1.PolicyTargets) bool { return n.Unhealthy == 4 })
	plan := w.plan(policy, "web")
	startExecutor(t, newEvidence(t))
	w.UntilPlan(plan, "it waits for the others", func(p *v1alpha1.RemediationPlan) bool {
		return strings.HasPrefix(p.Status.DeferralReason, "0 of the 4 objects that did not drift are healthy")
	})
	if imageOf(w.Live("web")) == guarded.Image {
		t.Error("the target was written")
	}
	w.Rollouts()
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("with healthy others the plan is %s", remediation.Describe(plan))
	}
}

// D8 of the review of remediation: a plan by hand wrote ten of eleven objects at once.
func TestAPlanByHandWritesNoMoreThanOneOperationMayHave(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.crowd(9) // three of twelve are no mass drift
	w.Drifted("web", "api", "db")
	policy := w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.MaxTargetPercent = 17                                 // of twelve two
		s.MinimumDriftAge = &metav1.Duration{Duration: 24 * time.Hour} // the policy makes no plan by itself
	})
	w.untilCounted(policy, func(n v1alpha1.PolicyTargets) bool { return n.Selected == 12 && n.Unhealthy == 0 })
	plan := w.plan(policy, "web", "api", "db", inBatches(v1alpha1.StrategyAllAtOnce, 3))
	startExecutor(t, newEvidence(t))
	plan = w.Ended(plan)
	if want := "Skipped BlastRadius Verified Verified"; plan.Status.Phase != v1alpha1.PlanPartialSuccess || endsOfSteps(plan) != want {
		t.Errorf("of twelve objects two may be written, in any order; the plan is %s", remediation.Describe(plan))
	}
	for i, name := range []string{"web", "api", "db"} {
		skipped := plan.Status.Steps[i].State == v1alpha1.StepSkipped
		if authorized := imageOf(w.Live(name)) == guarded.Image; authorized == skipped {
			t.Errorf("%s has the authorized image: %t, and its step is %s", name, authorized, plan.Status.Steps[i].State)
		}
	}
}

// endsOfSteps joins the states and reasons of the steps of a plan in alphabetical order.
// Steps that may begin together begin in the order in which their targets are ready.
func endsOfSteps(plan *v1alpha1.RemediationPlan) string {
	var of []string
	for _, step := range plan.Status.Steps {
		of = append(of, strings.TrimSpace(string(step.State)+" "+string(step.Reason)))
	}
	slices.Sort(of)
	return strings.Join(of, " ")
}

// untilCounted waits until the assessor has counted the objects of a policy so.
func (w *world) untilCounted(policy *v1alpha1.RemediationPolicy, counted func(v1alpha1.PolicyTargets) bool) {
	w.t.Helper()
	poll.Until(w.t, patience, "the assessor has counted the objects", func() error {
		p := &v1alpha1.RemediationPolicy{}
		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(policy), p); err != nil {
			return err
		}
		if !counted(p.Status.Targets) {
			return fmt.Errorf("the counts are %+v", p.Status.Targets)
		}
		return nil
	})
}

// D13 of the review of remediation: a person changed the policy in a hurry, and the plan
// went on to its next target.
func TestAChangedPolicyEndsTheStepsThatHaveNotBegun(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	var gate remediation.Gate
	w.RolloutsThrough(&gate)
	w.UnderGuard()
	w.Drifted("web", "api")
	policy := w.policy(selectsNothing)
	plan := w.plan(policy, "web", "api")
	gate.Shut()
	defer gate.Open()
	startExecutor(t, newEvidence(t))
	w.UntilPlan(plan, "the first is written", hasWritten)
	onlyNotifies := client.MergeFrom(policy.DeepCopy()) // a patch: the assessor writes the status meanwhile
	policy.Spec.Action = v1alpha1.ActionNotifyOnly
	w.Must(w.As(platform).Patch(t.Context(), policy, onlyNotifies))
	gate.Open()
	plan = w.Ended(plan)
	first, second := plan.Status.Steps[0], plan.Status.Steps[1]
	if plan.Status.Phase != v1alpha1.PlanPartialSuccess || first.State != v1alpha1.StepVerified || second.Reason != v1alpha1.ReasonPolicyChanged {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	if imageOf(w.Live("api")) == guarded.Image {
		t.Error("the second target was written under a policy that only notifies")
	}
}
