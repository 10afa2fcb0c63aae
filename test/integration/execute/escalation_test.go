// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// clockOf starts an assessor whose clock the test puts forward.
func clockOf(t *testing.T, changes ...func(*assessor.Setup)) *inprocess.Ahead {
	t.Helper()
	now := &inprocess.Ahead{}
	startAssessor(t, append(changes, func(s *assessor.Setup) { s.Clock = now; now.Dates(s.Config) })...)
	return now
}

// One policy says both: it tells people first, and puts the drift back when it is older.
func TestPeopleAreToldFirstAndAnOlderDriftIsPutBack(t *testing.T) {
	rotation.Share(t, 3)
	w, r, records, told := newWorld(t), newReceivers(t), newEvidence(t), prometheus.NewRegistry()
	now := clockOf(t, r.assessorTells(told))
	w.Rollouts()
	w.UnderGuard()
	w.crowd(6) // two of eight are no mass drift
	w.Drifted("web")
	startExecutor(t, records)
	policy := w.policy(r.channels, busyWriters, func(s *v1alpha1.RemediationPolicySpec) {
		s.Notifications.OnPlanCreated = v1alpha1.PlanCreatedEnabled
		s.Escalation = &v1alpha1.RemediationEscalation{
			InitialAction:    v1alpha1.InitialNotifyOnly,
			RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: &metav1.Duration{Duration: time.Hour}},
		}
	})

	w.untilWaits(policy, "1 NotifyStage (stage Notify: people are notified, and it is remediated when it is 1h0m0s old)")
	w.untilOutcomes(told, "sent", 2)
	w.plugin().answers(0, []string{"policy", "explain", policy.Name, "deployment/web"}, "Escalation", "stage Notify")
	w.plugin().answers(0, []string{"plan", "preview", policy.Name}, "deployment.apps/web  NotifyStage: stage Notify")
	w.untouched("web")
	if plans := w.plans(); len(plans) != 0 {
		t.Fatalf("in the first stage there are %d plans", len(plans))
	}

	now.Set(time.Now().Add(2 * time.Hour))
	w.Drifted("api") // and has the policy look again
	plan := w.Ended(w.onlyPlan())
	if targets := plan.Spec.Plan.Targets; plan.Status.Phase != v1alpha1.PlanSucceeded || len(targets) != 1 || targets[0].Name != "web" {
		t.Errorf("the plan of %+v is %s", targets, remediation.Describe(plan))
	}
	w.untilOutcomes(told, "sent", 6)
	w.untouched("api")
	r.mu.Lock()
	defer r.mu.Unlock()
	escalated, created := 0, 0
	for _, hook := range r.hooks {
		switch {
		case strings.HasSuffix(hook, " plan.escalated"):
			escalated++
		case strings.HasSuffix(hook, " plan.created"):
			created++
		}
	}
	if escalated != 2 || created != 1 || !strings.HasSuffix(r.hooks[0], " plan.escalated") {
		t.Errorf("people are told of each drift once, and of the plan after that: %q", r.hooks)
	}
	w.proven(records, plan)
}

// The floor of a foreign image in production is Critical, so the level never rises. The
// score does.
func TestSeverityEscalationFiresUnderTheFloorsOfProduction(t *testing.T) {
	rotation.Share(t, 3)
	w, records := newWorld(t), newEvidence(t)
	now := clockOf(t)
	w.Rollouts()
	w.UnderGuard()
	w.crowd(3)
	w.Drifted("web")
	startExecutor(t, records)
	policy := w.policy(busyWriters, func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerSeverityEscalation })
	w.untilWaits(policy, "1 NotEscalated (severity Critical, with a score in band Medium, is no more than at first)")
	now.Set(time.Now().Add(5 * time.Hour))
	w.SetEnv(mallory, "web", "MORE", "of it") // and has the assessor rate it again
	plan := w.succeeded()
	if s := plan.Spec.Plan.Targets[0].Severity; s.Level != s.First || s.FirstScore == nil || s.Score <= *s.FirstScore {
		t.Errorf("the severity of the plan is %+v", s)
	}
	w.UntilIs("web", "InSync")
	w.proven(records, plan)
}

// Nothing switches a notification on here: a plan that waits for a person tells by itself.
func TestPeopleAreToldByDefaultOfAPlanThatWaitsForThem(t *testing.T) {
	rotation.Share(t, 3)
	w, r, told := newWorld(t), newReceivers(t), prometheus.NewRegistry()
	startAssessor(t, r.assessorTells(told))
	w.UnderGuard()
	w.Drifted("web")
	policy := w.policy(r.channels, busyWriters, func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerManual })
	if got := policy.Spec.Notifications.OnPlanCreated; got != v1alpha1.PlanCreatedIfWaiting {
		t.Errorf("the default is %q", got)
	}
	plan := w.onlyPlan()
	w.untilOutcomes(told, "sent", 2)
	r.told(plan, map[notify.EventType]string{notify.PlanCreated: "plan.created"})
	w.plugin().answers(0, []string{"policy", "explain", policy.Name, "deployment/web"}, "kubectl plumbline plan execute "+plan.Name+" -n "+w.Name)
}
