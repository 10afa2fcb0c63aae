// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// crowd deploys so many others: what one operation may have, and what a mass drift
// is, are shares of all objects.
func (w *world) crowd(n int) {
	w.t.Helper()
	name := func(i int) string { return fmt.Sprint("other-", i) }
	for i := range n {
		w.Deploy(ci, name(i))
	}
	for i := range n {
		w.UntilIs(name(i), "InSync")
	}
}

// inBatches has a plan go by these batches, whose steps count from 0.
func inBatches(strategy v1alpha1.RemediationStrategy, sizes ...int) func(*v1alpha1.PlannedRemediation) {
	return func(p *v1alpha1.PlannedRemediation) {
		p.Strategy, p.Batches = strategy, nil
		next := int32(0)
		for i, size := range sizes {
			b := v1alpha1.PlanBatch{Order: int32(i), RequiresHealthCheck: v1alpha1.Enabled} //nolint:gosec // few
			for range size {
				b.Steps = append(b.Steps, next)
				next++
			}
			p.Batches = append(p.Batches, b)
		}
	}
}

// A staged policy puts one object back, waits until that is healthy, and as
// long after it as the policy says, and puts the rest back at once.
func TestAStagedPlanBeginsWithOneObject(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	var gate remediation.Gate
	w.RolloutsThrough(&gate)
	w.UnderGuard()
	w.crowd(9) // of twelve one operation may have three
	w.Drifted("web", "api", "db")
	w.policy(busyWriters, func(s *v1alpha1.RemediationPolicySpec) {
		s.Strategy, s.Safety.MaxConcurrent = v1alpha1.StrategyStaged, 3
		s.Health.DelayAfter = &metav1.Duration{Duration: time.Hour}
	})
	records, now := newEvidence(t), &inprocess.Ahead{}
	startExecutor(t, records, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })
	plan := w.UntilPlan(w.onlyPlan(), "the first one is healthy", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Counts.Succeeded == 1 && p.Status.Steps[0].Evidence != nil
	})
	gate.Shut() // neither of the others ends before both have begun
	defer gate.Open()
	now.Set(time.Now().Add(time.Hour + time.Minute))
	w.wake(plan)
	w.UntilPlan(plan, "the rest goes at once", func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) == 3 && p.Status.Steps[1].StartTime != nil && p.Status.Steps[2].StartTime != nil
	})
	gate.Open()
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded || len(plan.Status.Steps) != 3 {
		t.Fatalf("the plan is %s", remediation.Describe(plan))
	}
	first, second, third := plan.Status.Steps[0], plan.Status.Steps[1], plan.Status.Steps[2]
	for _, step := range []v1alpha1.PlanStep{second, third} {
		if after := step.StartTime.Sub(first.CompletionTime.Time); after < time.Hour {
			t.Errorf("step %d began %s after the first one", step.Index, after)
		}
	}
	if third.StartTime.After(second.CompletionTime.Time) || second.StartTime.After(third.CompletionTime.Time) {
		t.Errorf("the rest went one by one: %v to %v, %v to %v", second.StartTime, second.CompletionTime, third.StartTime, third.CompletionTime)
	}
	w.proven(records, plan)
}

func TestAStagedPlanWhoseFirstObjectFailsWritesNoOther(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // and nothing rolls out
	w.crowd(8)     // three of eleven are no mass drift
	w.Drifted("web", "api", "db")
	startExecutor(t, newEvidence(t))
	plan := w.Ended(w.plan(w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) {
		s.Safety.MaxConcurrent = 3
		s.Health.Timeout = &metav1.Duration{Duration: 5 * time.Second}
	}), "web", "api", "db", inBatches(v1alpha1.StrategyStaged, 1, 2)))
	var reasons []v1alpha1.StepReason
	for i := range plan.Status.Steps {
		reasons = append(reasons, plan.Status.Steps[i].Reason)
	}
	if plan.Status.Phase != v1alpha1.PlanFailed || fmt.Sprint(reasons) != "[Unhealthy Stopped Stopped]" {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	for _, name := range []string{"api", "db"} {
		if imageOf(w.Live(name)) == guarded.Image {
			t.Errorf("%s was written after the first one had failed", name)
		}
	}
}

func TestAllAtOnceWaitsForNone(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard() // nothing rolls out: no step ends before another begins
	w.crowd(8)
	w.Drifted("web", "api", "db")
	startExecutor(t, newEvidence(t))
	policy := w.policy(slowly, selectsNothing, func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxConcurrent = 3 })
	w.UntilPlan(w.plan(policy, "web", "api", "db", inBatches(v1alpha1.StrategyAllAtOnce, 3)), "all three are written", func(p *v1alpha1.RemediationPlan) bool {
		for i := range p.Status.Steps {
			if p.Status.Steps[i].State != v1alpha1.StepApplied {
				return false
			}
		}
		return len(p.Status.Steps) == 3
	})
}
