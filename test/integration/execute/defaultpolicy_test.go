// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// examplePolicy is the policy that ships as an example, active, for the world's
// Environment, and without the channels, for which there is nobody here.
func (w *world) examplePolicy() *v1alpha1.RemediationPolicy {
	w.t.Helper()
	raw, err := os.ReadFile("../../../examples/remediation.yaml")
	w.Must(err)
	p := &v1alpha1.RemediationPolicy{}
	w.Must(yaml.UnmarshalStrict(raw, p))
	p.Name, p.Spec.EnvironmentName = w.Name, w.environment
	p.Spec.Mode, p.Spec.RequestedBy, p.Spec.RequestedByGroups = v1alpha1.PolicyModeActive, platform, []string{people}
	p.Spec.Notifications = v1alpha1.RemediationNotifications{}
	w.Made(platform, p)
	return p
}

// The policy that ships as an example: in production, a digest mismatch that is a
// quarter of an hour old is put back on a weekday between two and six, one target
// after the other, with the cooldown between them.
func TestTheExamplePolicyFiresInItsWindow(t *testing.T) {
	rotation.Share(t, 3)
	now := &inprocess.Ahead{}
	tuesday := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	for tuesday.Weekday() != time.Tuesday {
		tuesday = tuesday.AddDate(0, 0, 1)
	}
	at := func(hour, minute int) time.Time {
		return tuesday.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
	}
	withClock := func(s *assessor.Setup) { s.Clock = now; now.Dates(s.Config) }
	now.Set(at(1, 40))
	assessor := startAssessor(t, withClock)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	for i := range 7 { // one operation may have a quarter of the objects: two of nine
		w.Deploy(ci, fmt.Sprint("other-", i))
	}
	w.Drifted("web", "api")
	policy := w.examplePolicy()
	records := newEvidence(t)
	startExecutor(t, records, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })

	w.untilPolicy(policy, "it waits for the drift to be old enough", func(s *v1alpha1.RemediationPolicyStatus) bool {
		return s.Targets.Drifted == 2 && s.Targets.Eligible == 0 && s.NextEvaluationTime != nil
	})
	if plans := w.plans(); len(plans) != 0 {
		t.Fatalf("there is a plan before the drift is a quarter of an hour old: %s", remediation.Describe(&plans[0]))
	}

	assessor.Halt(t)
	now.Set(at(1, 57)) // old enough, and the window opens in three minutes
	startAssessor(t, withClock)
	plan := w.onlyPlan()
	if plan.Spec.Plan.ScheduledTime == nil || !plan.Spec.Plan.ScheduledTime.Time.Equal(at(2, 0)) {
		t.Errorf("it is scheduled for %v, the window opens at %v", plan.Spec.Plan.ScheduledTime, at(2, 0))
	}
	w.UntilPlan(plan, "it waits for the window", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanScheduled })
	if len(plan.Spec.Plan.Targets) != 2 || len(plan.Spec.Plan.Batches) != 2 || plan.Spec.Plan.Batches[0].RequiresHealthCheck != v1alpha1.Enabled {
		t.Errorf("it is to put back %d targets in %d batches", len(plan.Spec.Plan.Targets), len(plan.Spec.Plan.Batches))
	}

	now.Set(at(2, 1))
	w.wake(plan)
	w.UntilPlan(plan, "the first is healthy again, and the second waits for the cooldown", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Counts.Succeeded == 1 && strings.Contains(p.Status.DeferralReason, "Cooldown")
	})

	now.Set(at(2, 8))
	w.wake(plan)
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	for _, name := range []string{"web", "api"} {
		if got := imageOf(w.Live(name)); got != guarded.Image {
			t.Errorf("%s runs %s", name, got)
		}
	}
	w.settled(2)
	w.proven(records, plan)
}

// wake has the executor look at a plan, as anything that changes a ledger does.
func (w *world) wake(plan *v1alpha1.RemediationPlan) {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: w.environment}}
	w.Must(admin.Patch(w.t.Context(), l, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{"woken-for":"%s %d"}}}`, plan.Name, time.Now().UnixNano()))))
}

func (w *world) untilPolicy(policy *v1alpha1.RemediationPolicy, what string, check func(*v1alpha1.RemediationPolicyStatus) bool) {
	w.t.Helper()
	p := &v1alpha1.RemediationPolicy{}
	w.Eventually(what, func() error {
		if err := admin.Get(w.t.Context(), client.ObjectKeyFromObject(policy), p); err != nil {
			return err
		}
		if !check(&p.Status) {
			return fmt.Errorf("it is %+v", p.Status)
		}
		return nil
	})
}

// plans of the world's namespace.
func (w *world) plans() []v1alpha1.RemediationPlan {
	w.t.Helper()
	var list v1alpha1.RemediationPlanList
	w.Must(admin.List(w.t.Context(), &list, client.InNamespace(w.Name)))
	return list.Items
}

// onlyPlan waits until there is a plan, and gives it.
func (w *world) onlyPlan() *v1alpha1.RemediationPlan {
	w.t.Helper()
	var found []v1alpha1.RemediationPlan
	w.Eventually("there is a plan", func() error {
		if found = w.plans(); len(found) != 1 {
			return fmt.Errorf("there are %d plans", len(found))
		}
		return nil
	})
	return &found[0]
}
