// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

func TestPeopleAreToldOnceHowAPlanGoes(t *testing.T) {
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	records, registry := newEvidence(t), prometheus.NewRegistry()
	executor := startExecutor(t, records, r.tells(registry))
	plan := w.Ended(w.plan(w.policy(r.channels), "web"))
	w.untilOutcomes(registry, "sent", 4)
	executor.Halt(t)

	// The next one tells the end again, to whoever did not hear it: nobody.
	registry = prometheus.NewRegistry()
	startExecutor(t, records, r.tells(registry))
	w.untilOutcomes(registry, "deduplicated", 2)
	r.told(plan, map[notify.EventType]string{notify.PlanStarted: "plan.started", notify.PlanCompleted: "plan.completed"})
}

func TestAnEndThatWasNotHeardIsToldByTheNextExecutor(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	r.setAway(true)
	records, registry := newEvidence(t), prometheus.NewRegistry()
	executor := startExecutor(t, records, r.tells(registry))
	onlyTheEnd := func(s *v1alpha1.RemediationPolicySpec) {
		r.channels(s)
		s.Notifications.OnStarted = v1alpha1.Disabled
	}
	plan := w.Ended(w.plan(w.policy(onlyTheEnd), "web"))
	w.untilOutcomes(registry, "sent", 1) // the mail
	executor.Halt(t)
	if n := outcomes(t, registry, "dropped"); n != 1 {
		t.Errorf("%d notifications were dropped at the end of the process, want the webhook", n)
	}

	r.setAway(false)
	registry = prometheus.NewRegistry()
	startExecutor(t, records, r.tells(registry))
	w.untilOutcomes(registry, "sent", 1)         // the webhook
	w.untilOutcomes(registry, "deduplicated", 1) // the mail
	r.told(plan, map[notify.EventType]string{notify.PlanCompleted: "plan.completed"})
}

// busyWriters lets a policy act on what was just deployed, as all objects of a test
// are.
func busyWriters(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.ActiveWriter = v1alpha1.Allowed }

// The assessor tells that a plan was made, the executor the rest; each channel hears
// each of it once.
func TestPeopleAreToldOfEveryTurnOfAPlanByEveryChannel(t *testing.T) {
	rotation.Share(t, 3)
	w, r := newWorld(t), newReceivers(t)
	made, carried := prometheus.NewRegistry(), prometheus.NewRegistry()
	assessor := startAssessor(t, r.assessorTells(made))
	w.UnderGuard() // and nothing rolls out
	w.Drifted("web")
	w.policy(r.allChannels, busyWriters, func(s *v1alpha1.RemediationPolicySpec) {
		s.Health.Timeout = &metav1.Duration{Duration: 5 * time.Second}
	})
	plan := w.onlyPlan()
	w.untilOutcomes(made, "sent", 4)
	assessor.Halt(t) // it would make the next attempt

	startExecutor(t, newEvidence(t), r.tells(carried))
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanFailed {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	w.untilOutcomes(carried, "sent", 8)
	r.toldByAll(plan, map[notify.EventType]string{
		notify.PlanCreated: "plan.created", notify.PlanStarted: "plan.started", notify.PlanFailed: "plan.failed",
	})
}

// A policy that only notifies leaves the drift to people, and tells them so. An assessor
// that starts again tells them once more: a second alarm is better than none.
func TestPeopleAreToldOfWhatIsLeftToThem(t *testing.T) {
	rotation.Share(t, 3)
	w, r := newWorld(t), newReceivers(t)
	told := prometheus.NewRegistry()
	assessor := startAssessor(t, r.assessorTells(told))
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	startExecutor(t, newEvidence(t))
	policy := w.policy(r.allChannels, busyWriters, action(v1alpha1.ActionNotifyOnly))
	w.untilOutcomes(told, "sent", 4)
	assessor.Halt(t)

	told = prometheus.NewRegistry()
	startAssessor(t, r.assessorTells(told))
	w.untilOutcomes(told, "sent", 4)

	if plans := w.plans(); len(plans) != 0 || imageOf(w.Live("web")) == guarded.Image {
		t.Errorf("there are %d plans, and web runs %s", len(plans), imageOf(w.Live("web")))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.hooks) != 2 || r.hooks[0] != r.hooks[1] || !strings.HasSuffix(r.hooks[0], " plan.escalated") {
		t.Errorf("webhooks, want two of one id: %q", r.hooks)
	}
	r.arrived("CloudEvents, compared with the webhooks", r.events, r.hooks)
	r.named("chats", r.chats, policy.Name, 2)
	r.named("mails", r.mails, policy.Name, 2)
}

// The receivers take what is sent and do not answer; the plan is carried out to its
// end meanwhile, and the rest is told once they speak.
func TestNobodyWaitsForAReceiver(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web", "api")
	speak := r.setMute()
	registry := prometheus.NewRegistry()
	startExecutor(t, newEvidence(t), r.tells(registry), func(s *executor.Setup) {
		s.Notifications.Retry.AttemptTimeout = 10 * time.Minute // nobody gives up while the test runs
	})
	defer speak()
	plan := w.Ended(w.plan(w.policy(r.allChannels, selectsNothing), "web", "api"))
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	w.Eventually("each channel waits for the answer to the first thing it told", func() error {
		if n := r.waiting(); n != 4 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	if n := outcomes(t, registry, "sent"); n != 0 {
		t.Errorf("%d notifications count as sent, and nobody has answered", n)
	}
	speak()
	w.untilOutcomes(registry, "sent", 8)
	r.toldByAll(plan, map[notify.EventType]string{notify.PlanStarted: "plan.started", notify.PlanCompleted: "plan.completed"})
}
