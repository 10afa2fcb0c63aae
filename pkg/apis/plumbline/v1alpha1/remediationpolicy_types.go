// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RemediationExceptions are the targets that a policy leaves alone by default.
type RemediationExceptions struct {
	// unattributed is about drift without a known writer.
	// +optional
	// +default="Forbidden"
	Unattributed Permission `json:"unattributed,omitempty"`
	// gitOps is about targets that a GitOps tool would remediate itself.
	// +optional
	// +default="Forbidden"
	GitOps Permission `json:"gitOps,omitempty"`
	// activeWriter is about targets that a trusted writer has just changed.
	// +optional
	// +default="Forbidden"
	ActiveWriter Permission `json:"activeWriter,omitempty"`
	// recreate objects that are gone.
	// +optional
	// +default="Forbidden"
	Recreate Permission `json:"recreate,omitempty"`
}

// RemediationConditions are the thresholds of a drift, any of them.
//
// +kubebuilder:validation:XValidation:rule="has(self.minimumDriftAge) || has(self.minimumSeverity)",message="name minimumDriftAge, minimumSeverity, or both"
type RemediationConditions struct {
	// minimumDriftAge is the age that a drift must reach.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) > duration('0s') && duration(self) <= duration('8760h')",message="a duration such as 2h, from more than 0s to 8760h"
	MinimumDriftAge *metav1.Duration `json:"minimumDriftAge,omitempty"`
	// minimumSeverity is the severity that a drift must reach.
	// +optional
	MinimumSeverity SeverityLevel `json:"minimumSeverity,omitempty"`
}

// InitialAction is the first answer of a policy to a drift, before its action.
// +kubebuilder:validation:Enum=NotifyOnly
type InitialAction string

// InitialNotifyOnly notifies people, and does not write.
const InitialNotifyOnly InitialAction = "NotifyOnly"

// RemediationEscalation has two stages: people are told first, and the action of the
// policy is taken when the drift is older or worse.
type RemediationEscalation struct {
	// initialAction is taken until remediateWhenAny holds.
	// +optional
	// +default="NotifyOnly"
	InitialAction InitialAction `json:"initialAction,omitempty"`
	// remediateWhenAny says when the action of the policy is taken: when any of these
	// conditions holds.
	// +required
	RemediateWhenAny RemediationConditions `json:"remediateWhenAny,omitzero"`
}

// RemediationPolicySpec decides when and how drift is remediated.
//
// +kubebuilder:validation:XValidation:rule="!has(self.escalation) || self.action != 'NotifyOnly'",message="escalation leads from NotifyOnly to another action: set action to Reconcile, Rollback, Scale, or Restart, or leave escalation out",fieldPath=".escalation"
// +kubebuilder:validation:XValidation:rule="!has(self.escalation) || !has(self.escalation.remediateWhenAny.minimumDriftAge) || !has(self.minimumDriftAge) || duration(self.minimumDriftAge) < duration(self.escalation.remediateWhenAny.minimumDriftAge)",message="people would never be told first: set an age above spec.minimumDriftAge",fieldPath=".escalation.remediateWhenAny.minimumDriftAge"
// +kubebuilder:validation:XValidation:rule="!has(self.escalation) || !has(self.escalation.remediateWhenAny.minimumDriftAge) || !has(self.maximumDriftAge) || duration(self.escalation.remediateWhenAny.minimumDriftAge) < duration(self.maximumDriftAge)",message="a drift would be too old before it is remediated: set an age below spec.maximumDriftAge",fieldPath=".escalation.remediateWhenAny.minimumDriftAge"
// +kubebuilder:validation:XValidation:rule="!has(self.escalation) || !has(self.escalation.remediateWhenAny.minimumSeverity) || !has(self.minimumSeverity) || (self.escalation.remediateWhenAny.minimumSeverity == 'Critical' ? self.minimumSeverity != 'Critical' : self.escalation.remediateWhenAny.minimumSeverity == 'High' ? self.minimumSeverity in ['Info', 'Low', 'Medium'] : self.escalation.remediateWhenAny.minimumSeverity == 'Medium' ? self.minimumSeverity in ['Info', 'Low'] : self.escalation.remediateWhenAny.minimumSeverity == 'Low' && self.minimumSeverity == 'Info')",message="people would never be told first: set a severity above spec.minimumSeverity, which is High by default",fieldPath=".escalation.remediateWhenAny.minimumSeverity"
// +kubebuilder:validation:XValidation:rule="!has(self.effectiveness) || !has(self.effectiveness.stabilization) || !has(self.safety) || !has(self.safety.cooldown) || duration(self.effectiveness.stabilization) <= duration(self.safety.cooldown)",message="stabilization must be at most safety.cooldown, so that no remediation begins before the one before is measured",fieldPath=".effectiveness.stabilization"
// +kubebuilder:validation:XValidation:rule="!has(self.maximumDriftAge) || !has(self.minimumDriftAge) || duration(self.minimumDriftAge) < duration(self.maximumDriftAge)",message="a drift would be too old before it is old enough",fieldPath=".maximumDriftAge"
// +kubebuilder:validation:XValidation:rule="self.trigger != 'Scheduled' || (has(self.schedule) && has(self.schedule.maintenanceWindow) && (has(self.schedule.maintenanceWindow.start) || has(self.schedule.maintenanceWindow.end)))",message="trigger Scheduled needs a maintenance window",fieldPath=".schedule.maintenanceWindow"
// +kubebuilder:validation:XValidation:rule="self.trigger != 'AgeThreshold' || has(self.minimumDriftAge)",message="trigger AgeThreshold needs minimumDriftAge",fieldPath=".minimumDriftAge"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.strategy != 'BlueGreen' || has(self.standby)",message="the executor makes pods beside those of the target: set standby.podLabels to labels outside the selectors of the Service and of the target, or use strategy Rolling or Staged",fieldPath=".strategy"
// +kubebuilder:validation:XValidation:rule="!has(self.standby) || (has(self.strategy) && self.strategy == 'BlueGreen')",message="only the strategy BlueGreen makes a standby: set strategy to BlueGreen, or remove standby",fieldPath=".standby"
// +kubebuilder:validation:XValidation:rule="!has(self.strategy) || self.strategy != 'BlueGreen' || self.action in ['Reconcile', 'Rollback']",message="a standby serves while the target is remediated: with BlueGreen, set action to Reconcile or Rollback",fieldPath=".strategy"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Active' || has(self.requestedBy) || has(self.serviceAccountName)",message="an active policy acts with the permissions of one user: name yourself (kubectl auth whoami), or set serviceAccountName in a policy that a tool applies from Git",fieldPath=".requestedBy"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName) || (!has(self.requestedBy) && !has(self.requestedByGroups))",message="a policy acts with the rights of a user or of a service account: remove serviceAccountName, or requestedBy and requestedByGroups",fieldPath=".serviceAccountName"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName) || has(oldSelf.serviceAccountName)",message="serviceAccountName is set when the policy is created, so that the account lends its permissions to no field of another writer: delete the policy, and create it again",fieldPath=".serviceAccountName"
type RemediationPolicySpec struct {
	// environmentName is the Environment with the drift that the policy remediates.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="environmentName is immutable, because its ledger counts the writes of this policy"
	EnvironmentName string `json:"environmentName,omitempty"`
	// resources are the selected kinds. If unset, all guarded kinds are selected.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Resources []GuardedResource `json:"resources,omitempty"`
	// selector narrows it to objects with these labels.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",message="an empty selector selects everything and reads like a mistake; leave it out to select every guarded object of the environment"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",message="at most 32 labels",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) > 32 || self.matchLabels.all(k, size(k) > 0 && size(k) <= 317 && size(self.matchLabels[k]) <= 63)",message="a label key has at most 317 characters and its value at most 63",fieldPath=".matchLabels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",message="at most 32 expressions",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, size(e.key) > 0 && size(e.key) <= 317 && (!has(e.values) || size(e.values) <= 64))",message="an expression has a label key of at most 317 characters and at most 64 values",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, e.operator in ['In', 'NotIn', 'Exists', 'DoesNotExist'])",message="operator is one of In, NotIn, Exists, DoesNotExist",fieldPath=".matchExpressions"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) > 32 || self.matchExpressions.all(e, (e.operator in ['In', 'NotIn']) == (has(e.values) && size(e.values) > 0))",message="In and NotIn need values, Exists and DoesNotExist take no values",fieldPath=".matchExpressions"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// mode says whether the policy acts.
	// +optional
	// +default="ObserveOnly"
	Mode PolicyMode `json:"mode,omitempty"`
	// requestedBy must be the authenticated user that wrote this spec last. The policy is bound
	// by the permissions of that user.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// requestedByGroups are groups of that user that give the policy their permissions; each
	// must be one of the authenticated user's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	RequestedByGroups []string `json:"requestedByGroups,omitempty"`
	// serviceAccountName is the ServiceAccount that the policy acts as, as namespace/name, for
	// a policy that a tool applies from Git. The policy is bound by the permissions of that
	// account. Each change of such a policy needs the verb impersonate on the account, or the
	// verb delegate on the policy. A change of mode to ObserveOnly or Halted needs neither. A
	// policy has serviceAccountName or requestedBy, and gets serviceAccountName when it is
	// created.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=234
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// trigger says when a drift is remediated.
	// +required
	Trigger RemediationTrigger `json:"trigger,omitempty"`
	// minimumSeverity is the severity that a drift must reach.
	// +optional
	// +default="High"
	MinimumSeverity SeverityLevel `json:"minimumSeverity,omitempty"`
	// minimumDriftAge is the age that a drift must reach.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('8760h')",message="a duration such as 15m, from 0s to 8760h"
	MinimumDriftAge *metav1.Duration `json:"minimumDriftAge,omitempty"`
	// maximumDriftAge is the age of a drift after which a person has to decide.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="a duration such as 24h, from 1m to 8760h"
	MaximumDriftAge *metav1.Duration `json:"maximumDriftAge,omitempty"`
	// action is the action that is taken.
	// +required
	Action RemediationAction `json:"action,omitempty"`
	// escalation tells people first, and takes the action when a drift is older or worse. If
	// unset, the action is taken at once.
	// +optional
	Escalation *RemediationEscalation `json:"escalation,omitempty"`
	// strategy is the order of the writes to several targets.
	// +optional
	// +default="Rolling"
	Strategy RemediationStrategy `json:"strategy,omitempty"`
	// standby says how the pods of a standby differ from those of the target. The strategy BlueGreen
	// needs it, and no other strategy has it.
	// +optional
	Standby *StandbyTemplate `json:"standby,omitempty"`
	// safety bounds the remediations of the policy.
	// +optional
	// +default={}
	Safety RemediationSafety `json:"safety,omitzero"`
	// schedule says when it may act. If unset, at any time.
	// +optional
	Schedule RemediationSchedule `json:"schedule,omitzero"`
	// health defines a healthy target.
	// +optional
	// +default={}
	Health RemediationHealth `json:"health,omitzero"`
	// effectiveness says how the effect of a remediation is measured.
	// +optional
	Effectiveness RemediationEffectiveness `json:"effectiveness,omitzero"`
	// exceptions are the targets that it leaves alone by default.
	// +optional
	// +default={}
	Exceptions RemediationExceptions `json:"exceptions,omitzero"`
	// notifications name the channels.
	// +optional
	// +default={}
	Notifications RemediationNotifications `json:"notifications,omitzero"`
}

// PolicyTargets counts the objects a policy is about.
type PolicyTargets struct {
	// selected objects under guard.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Selected int32 `json:"selected"`
	// drifted is the number of drifted objects among them.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Drifted int32 `json:"drifted"`
	// eligible ones would be remediated now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Eligible int32 `json:"eligible"`
	// healthy counts the selected objects that are in sync, are no targets of a plan under
	// way, and are ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Healthy int32 `json:"healthy"`
	// unhealthy counts those of them that are not ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unhealthy int32 `json:"unhealthy"`
}

// ToldEscalation is a drift that people were told of.
type ToldEscalation struct {
	// id is the id of the drift and of the reason to tell people of it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	ID string `json:"id,omitempty"`
	// severity is the severity of the drift when people were told.
	// +optional
	Severity SeverityLevel `json:"severity,omitempty"`
}

// RemediationPolicyStatus is the state of a policy.
type RemediationPolicyStatus struct {
	// conditions are Ready, TargetsSelected, Degraded while something holds the policy
	// back (reasons BreakerOpen, BreakerHalfOpen and MassDrift), and Stalled while it is
	// True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// targets counts the objects it is about.
	// +optional
	Targets PolicyTargets `json:"targets,omitzero"`
	// waitingFor is the cause of the policy's wait, in words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	WaitingFor string `json:"waitingFor,omitempty"`
	// nextEvaluationTime is when something changes by time alone.
	// +optional
	NextEvaluationTime *metav1.Time `json:"nextEvaluationTime,omitempty"`
	// lastPlanName names the newest plan, as namespace/name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LastPlanName string `json:"lastPlanName,omitempty"`
	// digest is the digest of the active spec.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
	// told are the drifts that people were told of, the most severe first, so that another
	// assessor does not tell of them again.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=256
	Told []ToldEscalation `json:"told,omitempty"`
}

// RemediationPolicy decides when and how the drift of an Environment is remediated.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=remediationpolicies,scope=Cluster,categories=plumbline,shortName=rpol
// +kubebuilder:printcolumn:name="Environment",type=string,JSONPath=`.spec.environmentName`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Trigger",type=string,JSONPath=`.spec.trigger`
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`
// +kubebuilder:printcolumn:name="Drifted",type=integer,JSONPath=`.status.targets.drifted`
// +kubebuilder:printcolumn:name="Eligible",type=integer,JSONPath=`.status.targets.eligible`
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.waitingFor`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Last-Plan",type=string,JSONPath=`.status.lastPlanName`,priority=1
// +kubebuilder:printcolumn:name="Requested-By",type=string,JSONPath=`.spec.requestedBy`,priority=1
// +kubebuilder:printcolumn:name="Service-Account",type=string,JSONPath=`.spec.serviceAccountName`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RemediationPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec decides when and how drift is remediated.
	// +required
	Spec RemediationPolicySpec `json:"spec,omitzero"`
	// status is the state of the policy.
	// +optional
	Status RemediationPolicyStatus `json:"status,omitempty,omitzero"`
}

// RemediationPolicyList is a list of RemediationPolicies.
// +kubebuilder:object:root=true
type RemediationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemediationPolicy `json:"items"`
}
