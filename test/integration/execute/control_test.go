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

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
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
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.drifted("web", "api")
	plan := w.plan(w.policy(slowly), "web", "api")
	records := newEvidence(t)
	startExecutor(t, records)
	w.untilPlan(plan, "the first has written", hasWritten)
	w.control(plan, v1alpha1.PlanPause)
	w.untilPlan(plan, "it is paused", func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanPaused })
	w.rollouts()
	w.control(plan, "")
	plan = w.ended(plan)
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", describe(plan))
	}
	w.proven(records, plan)
}

func TestACancelledPlanWritesNothingMore(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()
	w.drifted("web", "api")
	plan := w.plan(w.policy(slowly), "web", "api")
	records := newEvidence(t)
	startExecutor(t, records)
	w.untilPlan(plan, "the first has written", hasWritten)
	w.control(plan, v1alpha1.PlanCancel)
	plan = w.ended(plan)
	if plan.Status.Phase != v1alpha1.PlanCancelled || plan.Status.EndedBy != platform {
		t.Errorf("the plan is %s, ended by %q", describe(plan), plan.Status.EndedBy)
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
			w.drifted("web", "api")
			policy := w.policy(slowly)
			plan := w.plan(policy, "web", "api")
			startExecutor(t, newEvidence(t))
			w.untilPlan(plan, "the first has written", hasWritten)
			tc.halt(w, policy)
			plan = w.ended(plan)
			if plan.Status.Phase != v1alpha1.PlanCancelled || plan.Status.EndedBy != tc.by {
				t.Errorf("the plan is %s, ended by %q", describe(plan), plan.Status.EndedBy)
			}
			if got := imageOf(w.Live("api")); got == guarded.Image {
				t.Error("the second target was written all the same")
			}
		})
	}
}

func TestADeferredPlanCanBeExecutedByAPerson(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.rollouts()
	w.UnderGuard()
	w.drifted("web")
	policy := w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Trigger = v1alpha1.TriggerScheduled
		in := time.Now().UTC().Add(3 * time.Hour)
		s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: in.Format("15:04"), End: in.Add(time.Hour).Format("15:04"), TimeZone: "UTC"}
	})
	plan := w.plan(policy, "web")
	startExecutor(t, newEvidence(t))
	w.untilPlan(plan, "it waits for the window", func(p *v1alpha1.RemediationPlan) bool {
		return p.Status.Phase == v1alpha1.PlanDeferred && p.Status.DeferredUntil != nil
	})
	w.control(plan, v1alpha1.PlanExecute)
	plan = w.ended(plan)
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", describe(plan))
	}
}

func TestALedgerThatWasDeletedGrantsNothing(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.rollouts()
	w.UnderGuard()
	w.drifted("web", "api")
	policy := w.policy()
	startExecutor(t, newEvidence(t))
	first := w.ended(w.plan(policy, "web"))
	if first.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", describe(first))
	}
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: w.environment}}
	w.Must(admin.Delete(t.Context(), l))
	second := w.plan(policy, "api")
	waits := func(p *v1alpha1.RemediationPlan) bool { return strings.Contains(p.Status.DeferralReason, "LedgerAge") }
	w.untilPlan(second, "the new ledger refuses", waits)
	w.Must(w.As("oncall").Patch(t.Context(), l, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"grant":{"requestedBy":"oncall","reason":"I know what was done"}}}`))))
	if second = w.ended(second); second.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("after a person said that it may grant, the plan is %s", describe(second))
	}
}

func TestTheBreakerOpensAfterThreeFailures(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.UnderGuard()      // nothing becomes ready
	for i := range 10 { // four of fourteen are no mass drift
		w.Deploy(ci, fmt.Sprint("other-", i))
	}
	w.drifted("a", "b", "c", "d")
	policy := w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Health.Timeout = &metav1.Duration{Duration: 5 * time.Second}
		s.Safety.MaxConcurrent = 4
	})
	startExecutor(t, newEvidence(t))
	var plans []*v1alpha1.RemediationPlan
	for _, name := range []string{"a", "b", "c"} {
		plans = append(plans, w.plan(policy, name))
	}
	for _, plan := range plans {
		if plan = w.ended(plan); plan.Status.Phase != v1alpha1.PlanFailed {
			t.Fatalf("the plan is %s", describe(plan))
		}
	}
	fourth := w.untilPlan(w.plan(policy, "d"), "the breaker keeps the fourth back", func(p *v1alpha1.RemediationPlan) bool {
		return strings.Contains(p.Status.DeferralReason, "CircuitBreaker")
	})
	if fourth.Status.DeferredUntil == nil {
		t.Errorf("it does not say until when: %s", describe(fourth))
	}
}

func TestWithoutAStoreForRecordsNothingIsWritten(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	w.rollouts()
	w.UnderGuard()
	w.drifted("web")
	records := newEvidence(t)
	full := &refusingStore{Store: records.writer.Store}
	full.refuse.Store(true)
	records.writer.Store = full
	plan := w.plan(w.policy(), "web")
	startExecutor(t, records)
	w.stays(plan, func(p *v1alpha1.RemediationPlan) bool { return p.Status.StartedAt == nil }, full.asked)
	full.refuse.Store(false)
	if plan = w.ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", describe(plan))
	}
	w.proven(records, plan)
}
