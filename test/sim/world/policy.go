// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// edit of one field of a policy.
type edit struct {
	field string
	do    func(*v1alpha1.RemediationPolicySpec)
}

// edits are of all fields that a person may change while plans are under way. The requester
// and the Environment are not among them: those end a plan at once, as a halt does.
func edits() []edit {
	return []edit{
		{"resources", func(s *v1alpha1.RemediationPolicySpec) {
			s.Resources = []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}}
		}},
		{"selector", func(s *v1alpha1.RemediationPolicySpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "another"}}
		}},
		{"mode", func(s *v1alpha1.RemediationPolicySpec) { s.Mode = v1alpha1.PolicyModeObserveOnly }},
		{"requestedByGroups", func(s *v1alpha1.RemediationPolicySpec) { s.RequestedByGroups = []string{"ops"} }},
		{"trigger", func(s *v1alpha1.RemediationPolicySpec) { s.Trigger = v1alpha1.TriggerManual }},
		{"minimumSeverity", func(s *v1alpha1.RemediationPolicySpec) { s.MinimumSeverity = v1alpha1.SeverityCritical }},
		{"minimumDriftAge", func(s *v1alpha1.RemediationPolicySpec) { s.MinimumDriftAge = &metav1.Duration{Duration: time.Hour} }},
		{"maximumDriftAge", func(s *v1alpha1.RemediationPolicySpec) { s.MaximumDriftAge = &metav1.Duration{Duration: time.Minute} }},
		{"action", func(s *v1alpha1.RemediationPolicySpec) { s.Action = v1alpha1.ActionNotifyOnly }},
		{"strategy", func(s *v1alpha1.RemediationPolicySpec) { s.Strategy = v1alpha1.StrategyAllAtOnce }},
		{"safety.maxConcurrent", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxConcurrent++ }},
		{"safety.maxPerHour", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxPerHour++ }},
		{"safety.maxPerDay", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxPerDay++ }},
		{"safety.cooldown", func(s *v1alpha1.RemediationPolicySpec) {
			s.Safety.Cooldown = &metav1.Duration{Duration: 2 * time.Minute}
		}},
		{"safety.maxTargets", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxTargets++ }},
		{"safety.minHealthyPercent", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MinHealthyPercent++ }},
		{"safety.circuitBreaker.failureThreshold", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.CircuitBreaker.FailureThreshold++ }},
		{"safety.circuitBreaker.openDuration", func(s *v1alpha1.RemediationPolicySpec) {
			s.Safety.CircuitBreaker.OpenDuration = &metav1.Duration{Duration: 30 * time.Second}
		}},
		{"schedule", func(s *v1alpha1.RemediationPolicySpec) { s.Schedule.Urgent = v1alpha1.Allowed }},
		{"health.stabilisation", func(s *v1alpha1.RemediationPolicySpec) {
			s.Health.Stabilisation = &metav1.Duration{Duration: time.Second}
		}},
		{"health.timeout", func(s *v1alpha1.RemediationPolicySpec) { s.Health.Timeout = &metav1.Duration{Duration: time.Minute} }},
		{"exceptions", func(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.Unattributed = v1alpha1.Allowed }},
		{"notifications", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnStarted = v1alpha1.Disabled }},
	}
}

// editsPolicy changes one field of the policy, or takes all changes back.
func (p *person) editsPolicy() {
	policy := p.w.policy.DeepCopy()
	if p.Rand().IntN(4) == 0 {
		if o := p.ask(http.MethodGet, policyPath, "", nil); o != nil {
			o["spec"] = object(policy)["spec"]
			p.ask(http.MethodPut, policyPath, plain, o)
		}
		return
	}
	all := edits()
	edit := all[p.Rand().IntN(len(all))]
	edit.do(&policy.Spec)
	if p.ask(http.MethodPatch, policyPath, mergePatch, apiserver.Object{"spec": object(policy)["spec"]}) != nil {
		p.w.count("edit of " + edit.field)
		p.w.count("edit of a policy")
	}
}

// blinds the executors for a while: the API server refuses them reads of one kind.
func (p *person) blinds() {
	kind := pick(p.Rand(), "remediationpolicies", "remediationpolicies", "remediationpolicies", "environments", "baselines", "clusterspecguards", "remediationledgers")
	p.w.count("kind that cannot be read")
	p.forAWhile(3*time.Minute, func() { p.w.blind.Store(&kind) }, func() { p.w.blind.Store(nil) })
}

// countsHealth writes how many other objects are healthy, as the assessor does.
func (p *person) countsHealth() {
	o := p.ask(http.MethodGet, policyPath, "", nil)
	if o == nil {
		return
	}
	healthy := pick(p.Rand(), 0, 1, 2, 3, 4)
	p.w.count("count of the healthy")
	p.countHealth(o, healthy, 4-healthy)
	p.Sleep(time.Duration(p.Rand().Int64N(int64(5 * time.Minute))))
	if o = p.ask(http.MethodGet, policyPath, "", nil); o != nil {
		p.countHealth(o, 4, 0)
	}
}

func (p *person) countHealth(policy map[string]any, healthy, unhealthy int) {
	p.ask(http.MethodPatch, policyPath+"/status", mergePatch, healthOf(policy, healthy, unhealthy))
}
