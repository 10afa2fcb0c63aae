// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PolicyMode says whether a policy acts.
// +kubebuilder:validation:Enum=ObserveOnly;Active;Halted
type PolicyMode string

// The modes of a policy.
const (
	// PolicyModeObserveOnly decides and reports, and does not remediate.
	PolicyModeObserveOnly PolicyMode = "ObserveOnly"
	// PolicyModeActive makes plans and carries them out.
	PolicyModeActive PolicyMode = "Active"
	// PolicyModeHalted stops all remediation at once, also that under way.
	PolicyModeHalted PolicyMode = "Halted"
)

// RemediationTrigger says when a drift is remediated.
// +kubebuilder:validation:Enum=Immediate;Scheduled;AgeThreshold;SeverityEscalation;Manual
type RemediationTrigger string

// The triggers.
const (
	// TriggerImmediate: as soon as it is found.
	TriggerImmediate RemediationTrigger = "Immediate"
	// TriggerScheduled: when the maintenance window is open.
	TriggerScheduled RemediationTrigger = "Scheduled"
	// TriggerAgeThreshold: when it is as old as minimumDriftAge.
	TriggerAgeThreshold RemediationTrigger = "AgeThreshold"
	// TriggerSeverityEscalation: when its level, or the band of its score, is above that of
	// when it was first seen.
	TriggerSeverityEscalation RemediationTrigger = "SeverityEscalation"
	// TriggerManual: a plan is made and waits for a person to execute it.
	TriggerManual RemediationTrigger = "Manual"
)

// RemediationAction is the answer to a drift.
// +kubebuilder:validation:Enum=NotifyOnly;Reconcile;Rollback;Scale;Restart;Quarantine
type RemediationAction string

// The actions.
const (
	// ActionNotifyOnly notifies, and does not write.
	ActionNotifyOnly RemediationAction = "NotifyOnly"
	// ActionReconcile reverts the drifted paths to the authorized content.
	ActionReconcile RemediationAction = "Reconcile"
	// ActionRollback returns the object to the last authorized state that was ready.
	ActionRollback RemediationAction = "Rollback"
	// ActionScale reverts only the number of replicas.
	ActionScale RemediationAction = "Scale"
	// ActionRestart replaces the pods, with the spec as it is.
	ActionRestart RemediationAction = "Restart"
	// ActionQuarantine has proxies of Plumbline send the object no new requests.
	ActionQuarantine RemediationAction = "Quarantine"
)

// RemediationStrategy says in which order and how many at once.
// +kubebuilder:validation:Enum=AllAtOnce;Rolling;Staged;BlueGreen
type RemediationStrategy string

// The strategies.
const (
	// StrategyAllAtOnce: one batch, as large as the limits allow.
	StrategyAllAtOnce RemediationStrategy = "AllAtOnce"
	// StrategyRolling: one after the other, each healthy before the next.
	StrategyRolling RemediationStrategy = "Rolling"
	// StrategyStaged: one, and the others when it is healthy.
	StrategyStaged RemediationStrategy = "Staged"
	// StrategyBlueGreen works on one target after the other, and has a standby answer the requests of
	// each target while it is repaired.
	StrategyBlueGreen RemediationStrategy = "BlueGreen"
)

// Permission says whether something may be done.
// +kubebuilder:validation:Enum=Allowed;Forbidden
type Permission string

// The permissions.
const (
	// Allowed permits it.
	Allowed Permission = "Allowed"
	// Forbidden does not.
	Forbidden Permission = "Forbidden"
)

// Toggle switches something on or off.
// +kubebuilder:validation:Enum=Enabled;Disabled
type Toggle string

// The toggles.
const (
	// Enabled is on.
	Enabled Toggle = "Enabled"
	// Disabled is off.
	Disabled Toggle = "Disabled"
)
