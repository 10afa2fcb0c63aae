// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/http"
	"strings"
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

// edits are of all fields that a person may change while plans are under way, see [fixed].
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
		{"escalation", func(s *v1alpha1.RemediationPolicySpec) {
			s.Escalation = &v1alpha1.RemediationEscalation{
				InitialAction: v1alpha1.InitialNotifyOnly, RemediateWhenAny: v1alpha1.RemediationConditions{MinimumDriftAge: &metav1.Duration{Duration: 2 * time.Hour}},
			}
		}},
		{"strategy", func(s *v1alpha1.RemediationPolicySpec) { s.Strategy = v1alpha1.StrategyAllAtOnce }},
		{"safety.maxConcurrent", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxConcurrent++ }},
		{"safety.maxPerHour", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxPerHour++ }},
		{"safety.maxPerDay", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxPerDay++ }},
		{"safety.cooldown", func(s *v1alpha1.RemediationPolicySpec) {
			s.Safety.Cooldown = &metav1.Duration{Duration: 2 * time.Minute}
		}},
		{"safety.maxTargets", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxTargets++ }},
		{"safety.maxTargetPercent", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxTargetPercent++ }},
		{"safety.minHealthyPercent", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MinHealthyPercent++ }},
		{"safety.circuitBreaker.failureThreshold", func(s *v1alpha1.RemediationPolicySpec) { s.Safety.CircuitBreaker.FailureThreshold++ }},
		{"safety.circuitBreaker.openDuration", func(s *v1alpha1.RemediationPolicySpec) {
			s.Safety.CircuitBreaker.OpenDuration = &metav1.Duration{Duration: 30 * time.Second}
		}},
		{"schedule.urgent", func(s *v1alpha1.RemediationPolicySpec) { s.Schedule.Urgent = v1alpha1.Allowed }},
		{"schedule.allowedDays", func(s *v1alpha1.RemediationPolicySpec) { s.Schedule.AllowedDays = []v1alpha1.Weekday{"Sunday"} }},
		{"schedule.maintenanceWindow", func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "00:05", End: "00:20", TimeZone: "UTC"}
		}},
		{"schedule.maintenanceWindow.timeZone, which there is not", func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "Mars/Olympus"}
		}},
		{"schedule.allowedStart and schedule.allowedEnd", func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.AllowedStart, s.Schedule.AllowedEnd = "00:00", "00:10"
		}},
		{"schedule, whose hours never meet", func(s *v1alpha1.RemediationPolicySpec) {
			s.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00"}
			s.Schedule.AllowedStart, s.Schedule.AllowedEnd = "08:00", "18:00"
		}},
		{"health.delayAfter", func(s *v1alpha1.RemediationPolicySpec) {
			s.Health.DelayAfter = &metav1.Duration{Duration: 20 * time.Second}
		}},
		{"health.stabilization", func(s *v1alpha1.RemediationPolicySpec) {
			s.Health.Stabilization = &metav1.Duration{Duration: time.Second}
		}},
		{"health.timeout", func(s *v1alpha1.RemediationPolicySpec) { s.Health.Timeout = &metav1.Duration{Duration: time.Minute} }},
		{"exceptions.unattributed", func(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.Unattributed = v1alpha1.Allowed }},
		{"exceptions.gitOps", func(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.GitOps = v1alpha1.Allowed }},
		{"exceptions.activeWriter", func(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.ActiveWriter = v1alpha1.Allowed }},
		{"exceptions.recreate", func(s *v1alpha1.RemediationPolicySpec) { s.Exceptions.Recreate = v1alpha1.Allowed }},
		{"notifications.onPlanCreated", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnPlanCreated = v1alpha1.PlanCreatedEnabled }},
		{"notifications.onStarted", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnStarted = v1alpha1.Disabled }},
		{"notifications.onCompleted", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnCompleted = v1alpha1.Disabled }},
		{"notifications.onFailed", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnFailed = v1alpha1.Disabled }},
		{"notifications.onEscalated", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnEscalated = v1alpha1.Disabled }},
		{"notifications.onIneffective", func(s *v1alpha1.RemediationPolicySpec) { s.Notifications.OnIneffective = v1alpha1.Disabled }},
		{"effectiveness", func(s *v1alpha1.RemediationPolicySpec) {
			s.Effectiveness = v1alpha1.RemediationEffectiveness{
				Stabilization: &metav1.Duration{Duration: 20 * time.Second}, Validity: &metav1.Duration{Duration: 2 * time.Minute},
				AlertCheckDelay: &metav1.Duration{Duration: time.Second}, PropagationDelay: &metav1.Duration{Duration: time.Second},
			}
		}},
	}
}

// setsHours says that an edit changes when the policy may act.
func (e edit) setsHours() bool {
	return strings.HasPrefix(e.field, "schedule") && e.field != "schedule.urgent"
}

// mends takes back, once everything is calm, what keeps a policy from acting for days.
func (w *World) mends() {
	o := w.Server.Look(group, "remediationpolicies", "", policyName)
	if o == nil {
		return
	}
	spec := typedOf[v1alpha1.RemediationPolicy](w, o).Spec
	mended := map[string]any{}
	if s := &spec.Schedule; s.MaintenanceWindow != nil || s.AllowedStart != "" || len(s.AllowedDays) > 0 {
		mended["schedule"] = nil
	}
	if len(mended) > 0 {
		w.direct(policyPath, apiserver.Object{"spec": mended})
	}
}

// noMetrics is why the effect of a plan is not measured.
const noMetrics = "no world has metrics or alerts"

// fixed are the fields that no person edits in these worlds, and why.
func fixed() map[string]string {
	return map[string]string{
		"environmentName":        "a policy of another Environment ends its plans at once, as a halt does",
		"requestedBy":            "a policy of another author ends its plans at once, as a halt does",
		"notifications.channels": "no world has a receiver",
		"serviceAccountName":     "the schema has the account come with the creation of a policy",

		"effectiveness.alertCheckDelay":  noMetrics,
		"effectiveness.alerts.matchers":  noMetrics,
		"effectiveness.hashes":           "no decision goes by them",
		"effectiveness.metrics.queries":  noMetrics,
		"effectiveness.propagationDelay": noMetrics,
		"effectiveness.stabilization":    noMetrics,
		"effectiveness.validity":         noMetrics,
		"standby.podLabels":              "the labels of pods decide in no world, as no world has pods of a standby",
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
	if p.w.hours != nil && edit.setsHours() { // the judge goes by the hours of the beginning
		return
	}
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
