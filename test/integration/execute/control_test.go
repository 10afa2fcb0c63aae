// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// slowly has every step wait for a rollout that never ends, so that there is time
// to do something about the plan.
func slowly(s *v1alpha1.RemediationPolicySpec) {
	s.Health.Timeout = &metav1.Duration{Duration: time.Hour}
}

func hasWritten(p *v1alpha1.RemediationPlan) bool {
	return len(p.Status.Steps) > 0 && p.Status.Steps[0].State == v1alpha1.StepApplied
}

func TestAPausedPlanGoesOnWhenItIsResumed(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.Drifted("web", "api")
	plan := w.plan(w.policy(slowly, selectsNothing), "web", "api")
	records := newEvidence(t)
	startExecutor(t, records)
	w.UntilPlan(plan, "the first has written", hasWritten)
	w.Control(plan, v1alpha1.PlanPause)
	w.UntilPlan(plan, "it is paused", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanPaused })
	w.Rollouts()
	w.Control(plan, "")
	plan = w.Ended(plan)
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	w.proven(records, plan)
}

func TestACanceledPlanWritesNothingMore(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.Drifted("web", "api")
	plan := w.plan(w.policy(slowly, selectsNothing), "web", "api")
	records := newEvidence(t)
	startExecutor(t, records)
	w.UntilPlan(plan, "the first has written", hasWritten)
	w.Control(plan, v1alpha1.PlanCancel)
	plan = w.Ended(plan)
	if plan.Status.Phase != v1alpha1.PlanCanceled || plan.Status.EndedBy != platform {
		t.Errorf("the plan is %s, ended by %q", remediation.Describe(plan), plan.Status.EndedBy)
	}
	if got := imageOf(w.Live("api")); got == guarded.Image {
		t.Errorf("api was written")
	}
	w.settled(1)
	w.proven(records, plan)
}

func TestHalting(t *testing.T) {
	for name, tc := range map[string]struct {
		halt func(*world, *v1alpha1.RemediationPolicy)
		by   string
	}{
		"the policy": {func(w *world, p *v1alpha1.RemediationPolicy) {
			w.Must(w.As("oncall").Patch(w.t.Context(), p, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"mode":"Halted","requestedBy":"oncall","requestedByGroups":["people"]}}`))))
		}, "oncall"},
		"taking its activation back": {func(w *world, p *v1alpha1.RemediationPolicy) {
			w.Must(w.As("oncall").Patch(w.t.Context(), p, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"mode":"ObserveOnly","requestedBy":"oncall","requestedByGroups":["people"]}}`))))
		}, "oncall"},
		"deleting it": {func(w *world, p *v1alpha1.RemediationPolicy) { w.Must(admin.Delete(w.t.Context(), p.DeepCopy())) }, ""},
		"the ledger": {func(w *world, _ *v1alpha1.RemediationPolicy) {
			l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: w.environment}}
			w.Must(w.As("oncall").Patch(w.t.Context(), l, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"halt":{"requestedBy":"oncall","reason":"something is wrong"}}}`))))
		}, "oncall"},
	} {
		t.Run(name+" ends what is under way", func(t *testing.T) {
			startAssessor(t)
			w := newWorld(t)
			w.UnderGuard()
			w.Drifted("web", "api")
			policy := w.policy(slowly, selectsNothing)
			plan := w.plan(policy, "web", "api")
			startExecutor(t, newEvidence(t))
			w.UntilPlan(plan, "the first has written", hasWritten)
			tc.halt(w, policy)
			plan = w.Ended(plan)
			if plan.Status.Phase != v1alpha1.PlanCanceled || plan.Status.EndedBy != tc.by {
				t.Errorf("the plan is %s, ended by %q", remediation.Describe(plan), plan.Status.EndedBy)
			}
			if got := imageOf(w.Live("api")); got == guarded.Image {
				t.Error("the second target was written all the same")
			}
		})
	}
}

func TestADeferredPlanCanBeExecutedByAPerson(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	policy := w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Trigger = v1alpha1.TriggerScheduled
		in := time.Now().UTC().Add(3 * time.Hour)
		s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: in.Format("15:04"), End: in.Add(time.Hour).Format("15:04"), TimeZone: "UTC"}
	})
	plan := w.plan(policy, "web")
	startExecutor(t, newEvidence(t))
	w.UntilPlan(plan, "it waits for the window", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Phase == v1alpha1.PlanDeferred && p.Status.ResumeTime != nil
	})
	w.Control(plan, v1alpha1.PlanExecute)
	plan = w.Ended(plan)
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
}

func TestALedgerThatWasDeletedGrantsNothing(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web", "api")
	policy := w.policy()
	startExecutor(t, newEvidence(t))
	first := w.Ended(w.plan(policy, "web"))
	if first.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", remediation.Describe(first))
	}
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: w.environment}}
	w.Must(admin.Delete(t.Context(), l))
	second := w.plan(policy, "api")
	waits := func(p *v1alpha1.RemediationPlan) bool { return strings.Contains(p.Status.DeferralReason, "LedgerAge") }
	w.UntilPlan(second, "the new ledger refuses", waits)
	w.Must(w.As("oncall").Patch(t.Context(), l, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"override":{"requestedBy":"oncall","reason":"I know what was done"}}}`))))
	if second = w.Ended(second); second.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("after a person said that it may grant, the plan is %s", remediation.Describe(second))
	}
}

func TestTheBreakerOpensAfterThreeFailuresAndClosesAfterASuccess(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()      // nothing becomes ready
	for i := range 10 { // four of fourteen are no mass drift
		w.Deploy(ci, fmt.Sprint("other-", i))
	}
	w.Drifted("a", "b", "c", "d")
	policy := w.policy(selectsNothing, func(s *v1alpha1.RemediationPolicySpec) {
		s.Health.Timeout = &metav1.Duration{Duration: 5 * time.Second}
		s.Safety.MaxConcurrent = 4
	})
	records, now := newEvidence(t), &inprocess.Ahead{}
	running := startExecutor(t, records)
	var plans []*v1alpha1.RemediationPlan
	for _, name := range []string{"a", "b", "c"} {
		plans = append(plans, w.plan(policy, name))
	}
	for _, plan := range plans {
		if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanFailed {
			t.Fatalf("the plan is %s", remediation.Describe(plan))
		}
	}
	fourth := w.UntilPlan(w.plan(policy, "d"), "the breaker keeps the fourth back", func(p *v1alpha1.RemediationPlan) bool {
		return strings.Contains(p.Status.DeferralReason, "CircuitBreaker")
	})
	if fourth.Status.ResumeTime == nil {
		t.Errorf("it does not say until when: %s", remediation.Describe(fourth))
	}
	if got := w.breaker(); got != v1alpha1.BreakerOpen {
		t.Errorf("the breaker is %s", got)
	}

	// When it has been open for long enough one step is tried, and that it goes well
	// closes it.
	running.Halt(t)
	now.Set(time.Now().Add(31 * time.Minute))
	w.Rollouts()
	startExecutor(t, records, func(s *executor.Setup) { s.Clock = now; now.Dates(s.Config) })
	if fourth = w.Ended(fourth); fourth.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan that was tried is %s", remediation.Describe(fourth))
	}
	if got := w.breaker(); got != v1alpha1.BreakerClosed {
		t.Errorf("after a success the breaker is %s", got)
	}
}

// breaker is the state of the only one in the Environment's ledger.
func (w *world) breaker() v1alpha1.BreakerState {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: w.environment}, l))
	if len(l.Status.Breakers) != 1 {
		w.t.Fatalf("there are %d breakers", len(l.Status.Breakers))
	}
	return l.Status.Breakers[0].State
}

func TestWithoutAStoreForRecordsNothingIsWritten(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	records := newEvidence(t)
	full := &refusingStore{Store: records.writer.Store}
	full.refuse.Store(true)
	records.writer.Store = full
	plan := w.plan(w.policy(), "web")
	startExecutor(t, records)
	w.stays(plan, func(p *v1alpha1.RemediationPlan) bool { return p.Status.StartTime == nil }, full.asked)
	full.refuse.Store(false)
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	w.proven(records, plan)
}
