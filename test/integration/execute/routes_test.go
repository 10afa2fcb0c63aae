// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// ofSeverity gives each target of a plan a level.
func ofSeverity(level v1alpha1.SeverityLevel) func(*v1alpha1.PlanTarget) {
	return func(t *v1alpha1.PlanTarget) { t.Severity.Level = level }
}

// from gives channels a minimum severity by their names.
func from(minima map[string]v1alpha1.SeverityLevel) func(*v1alpha1.RemediationPolicySpec) {
	return func(s *v1alpha1.RemediationPolicySpec) {
		for i := range s.Notifications.Channels {
			s.Notifications.Channels[i].MinimumSeverity = minima[s.Notifications.Channels[i].Name]
		}
	}
}

// The chat is for what is critical. Mail and events have no minimum.
func TestAChannelIsToldFromItsSeverityOn(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	registry := prometheus.NewRegistry()
	executor := startExecutor(t, newEvidence(t), r.tells(registry))
	policy := w.policy(r.allChannels, from(map[string]v1alpha1.SeverityLevel{"chat": v1alpha1.SeverityCritical, "hook": v1alpha1.SeverityMedium}))
	plan := w.Ended(w.plan(policy, "web", ofSeverity(v1alpha1.SeverityMedium)))
	w.untilOutcomes(registry, "sent", 6)
	executor.Halt(t) // sends what is left, so what has not come by now will not come
	kinds := map[notify.EventType]string{notify.PlanStarted: "plan.started", notify.PlanCompleted: "plan.completed"}
	r.told(plan, kinds)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrived("CloudEvents", r.events, happened(plan, kinds))
	r.named("chats", r.chats, plan.Name, 0)
}

// No channel is for what is of low severity, and the failure asks a person to act.
func TestAFailureBelowEveryMinimumIsToldByAllChannels(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w, r := newWorld(t), newReceivers(t)
	w.UnderGuard() // and nothing rolls out
	w.Drifted("web")
	registry := prometheus.NewRegistry()
	executor := startExecutor(t, newEvidence(t), r.tells(registry))
	const critical = v1alpha1.SeverityCritical
	policy := w.policy(r.allChannels, from(map[string]v1alpha1.SeverityLevel{"chat": critical, "hook": critical, "mail": critical, "events": critical}),
		func(s *v1alpha1.RemediationPolicySpec) {
			s.Health.Timeout = &metav1.Duration{Duration: 5 * time.Second}
		})
	plan := w.Ended(w.plan(policy, "web", ofSeverity(v1alpha1.SeverityLow)))
	if plan.Status.Phase != v1alpha1.PlanFailed {
		t.Errorf("the plan is %s", remediation.Describe(plan))
	}
	w.untilOutcomes(registry, "sent", 4)
	executor.Halt(t) // sends what is left, so the start of the plan will not come
	r.toldByAll(plan, map[notify.EventType]string{notify.PlanFailed: "plan.failed"})
}
