// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Policy is a RemediationPolicy.
type Policy struct {
	Object
	// EnvironmentID is the uid of the Environment, which EnvironmentName names. A request gives one of
	// the two.
	EnvironmentID   string `json:"environmentId,omitempty" kind:"-"`
	EnvironmentName string `json:"environmentName,omitempty"`

	Trigger         Word[v1alpha1.RemediationTrigger]  `json:"trigger,omitempty"`
	MinimumSeverity Word[v1alpha1.SeverityLevel]       `json:"minimumSeverity,omitempty"`
	MinimumDriftAge *Duration                          `json:"minimumDriftAge,omitempty"`
	MaximumDriftAge *Duration                          `json:"maximumDriftAge,omitempty"`
	Action          Word[v1alpha1.RemediationAction]   `json:"action,omitempty"`
	Strategy        Word[v1alpha1.RemediationStrategy] `json:"strategy,omitempty"`

	MaxConcurrentRemediations int32     `json:"maxConcurrentRemediations,omitempty" kind:"MaxConcurrent"`
	MaxRemediationsPerHour    int32     `json:"maxRemediationsPerHour,omitempty" kind:"MaxPerHour"`
	CooldownPeriod            *Duration `json:"cooldownPeriod,omitempty" kind:"Cooldown"`

	MaintenanceWindow *MaintenanceWindow       `json:"maintenanceWindow,omitempty" kind:"-"`
	AllowedDays       []Word[v1alpha1.Weekday] `json:"allowedDays,omitempty"`
	AllowedStartTime  string                   `json:"allowedStartTime,omitempty" kind:"AllowedStart" doc:"HH:MM in the time zone of the window."`
	AllowedEndTime    string                   `json:"allowedEndTime,omitempty" kind:"AllowedEnd"`

	Notifications *Notifications `json:"notifications,omitempty"`

	Mode                  Word[v1alpha1.PolicyMode]  `json:"mode,omitempty"`
	MaxRemediationsPerDay int32                      `json:"maxRemediationsPerDay,omitempty" kind:"MaxPerDay"`
	MaxTargets            int32                      `json:"maxTargets,omitempty"`
	MaxTargetPercent      int32                      `json:"maxTargetPercent,omitempty"`
	MinHealthyPercent     int32                      `json:"minHealthyPercent,omitempty"`
	CircuitBreaker        *CircuitBreaker            `json:"circuitBreaker,omitempty"`
	Urgent                Word[v1alpha1.Permission]  `json:"urgent,omitempty"`
	Resources             []v1alpha1.GuardedResource `json:"resources,omitempty"`
	Selector              *metav1.LabelSelector      `json:"selector,omitempty"`
	Escalation            *Escalation                `json:"escalation,omitempty"`
	Standby               *v1alpha1.StandbyTemplate  `json:"standby,omitempty"`
	Health                *PolicyHealth              `json:"health,omitempty"`
	Effectiveness         *Effectiveness             `json:"effectiveness,omitempty"`
	Exceptions            *Exceptions                `json:"exceptions,omitempty"`
	RequestedBy           string                     `json:"requestedBy,omitempty"`
	RequestedByGroups     []string                   `json:"requestedByGroups,omitempty"`
	ServiceAccountName    string                     `json:"serviceAccountName,omitempty"`
}

// MaintenanceWindow is a time of the day. A window that is not enabled is absent.
type MaintenanceWindow struct {
	Enabled  *bool  `json:"enabled,omitempty" kind:"-"`
	Start    string `json:"start,omitempty"`
	End      string `json:"end,omitempty"`
	TimeZone string `json:"timezone,omitempty"`
}

// CircuitBreaker stops a policy that fails.
type CircuitBreaker struct {
	FailureThreshold int32     `json:"failureThreshold,omitempty"`
	OpenDuration     *Duration `json:"openDuration,omitempty"`
}

// Escalation has people told before the action.
type Escalation struct {
	InitialAction    Word[v1alpha1.InitialAction] `json:"initialAction,omitempty"`
	RemediateWhenAny *EscalationConditions        `json:"remediateWhenAny,omitempty"`
}

// EscalationConditions are age and severity of a drift; one of them is enough.
type EscalationConditions struct {
	MinimumDriftAge *Duration                    `json:"minimumDriftAge,omitempty"`
	MinimumSeverity Word[v1alpha1.SeverityLevel] `json:"minimumSeverity,omitempty"`
}

// PolicyHealth says when a target counts as healthy after a step.
type PolicyHealth struct {
	DelayAfter    *Duration `json:"delayAfter,omitempty"`
	Stabilization *Duration `json:"stabilization,omitempty"`
	Timeout       *Duration `json:"timeout,omitempty"`
}

// Exceptions allow remediations that a policy leaves out by default.
type Exceptions struct {
	Unattributed Word[v1alpha1.Permission] `json:"unattributed,omitempty"`
	GitOps       Word[v1alpha1.Permission] `json:"gitOps,omitempty"`
	ActiveWriter Word[v1alpha1.Permission] `json:"activeWriter,omitempty"`
	Recreate     Word[v1alpha1.Permission] `json:"recreate,omitempty"`
}

// Effectiveness says how the effect of a remediation is measured.
type Effectiveness struct {
	Stabilization    *Duration                   `json:"stabilization,omitempty"`
	Validity         *Duration                   `json:"validity,omitempty"`
	AlertCheckDelay  *Duration                   `json:"alertCheckDelay,omitempty"`
	PropagationDelay *Duration                   `json:"propagationDelay,omitempty"`
	Alerts           *EffectAlerts               `json:"alerts,omitempty"`
	Metrics          *EffectMetric               `json:"metrics,omitempty"`
	Hashes           Word[v1alpha1.EffectHashes] `json:"hashes,omitempty"`
}

// EffectAlerts say which alerts are about a target.
type EffectAlerts struct {
	Matchers []AlertMatcher `json:"matchers,omitempty"`
}

// AlertMatcher selects alerts by one label.
type AlertMatcher struct {
	Label    string                       `json:"label,omitempty"`
	Operator Word[v1alpha1.MatchOperator] `json:"operator,omitempty"`
	Value    string                       `json:"value,omitempty"`
}

// EffectMetric has the queries about a target.
type EffectMetric struct {
	Queries []EffectQuery `json:"queries,omitempty"`
}

// EffectQuery is a metric of a target.
type EffectQuery struct {
	Name      string                         `json:"name,omitempty"`
	Query     string                         `json:"query,omitempty"`
	Objective Word[v1alpha1.EffectObjective] `json:"objective,omitempty"`
	Floor     v1alpha1.Decimal               `json:"floor,omitempty"`
}

// PolicyStatus is the status of a policy.
type PolicyStatus struct {
	Targets          v1alpha1.PolicyTargets `json:"targets"`
	WaitingFor       string                 `json:"waitingFor,omitempty"`
	NextEvaluationAt *time.Time             `json:"nextEvaluationAt,omitempty" kind:"NextEvaluationTime"`
	LastPlanName     string                 `json:"lastPlanName,omitempty"`
	Conditions       []Condition            `json:"conditions,omitempty"`
}

// PolicyOf shows a policy.
func PolicyOf(p *v1alpha1.RemediationPolicy, uids *Uids) Policy {
	out := Policy{Object: objectOf(&p.ObjectMeta), EnvironmentID: uids.Environments[p.Spec.EnvironmentName]}
	show(&out, &p.Spec)
	show(&out, &p.Spec.Safety)
	show(&out, &p.Spec.Schedule)
	if w := p.Spec.Schedule.MaintenanceWindow; w != nil {
		enabled := true
		out.MaintenanceWindow = &MaintenanceWindow{Enabled: &enabled}
		show(out.MaintenanceWindow, w)
	}
	return out
}

// PolicyStatusOf shows the status of a policy. It is no part of [Policy], whose version is that of the spec.
func PolicyStatusOf(p *v1alpha1.RemediationPolicy) PolicyStatus {
	var out PolicyStatus
	show(&out, &p.Status)
	return out
}

// Spec returns the spec that the policy describes. An error names the value that no kind has.
func (p *Policy) Spec() (v1alpha1.RemediationPolicySpec, error) {
	var spec v1alpha1.RemediationPolicySpec
	for _, part := range []any{&spec, &spec.Safety, &spec.Schedule} {
		if err := take(part, p); err != nil {
			return spec, err
		}
	}
	if w := p.MaintenanceWindow; w != nil && (w.Enabled == nil || *w.Enabled) {
		spec.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: w.Start, End: w.End, TimeZone: w.TimeZone}
	}
	return spec, nil
}
