// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AssessmentPhase is how far an assessment is.
// +kubebuilder:validation:Enum=Pending;WaitingForPropagation;Stabilizing;Assessing;Completed;Failed
// +kubebuilder:validation:MaxLength=32
type AssessmentPhase string

// The phases of an assessment. The last two are final.
const (
	// AssessmentPending: the assessor has not looked at the target, or does not know the time.
	AssessmentPending AssessmentPhase = "Pending"
	// AssessmentPropagating: the assessor waits until the write has arrived.
	AssessmentPropagating AssessmentPhase = "WaitingForPropagation"
	// AssessmentStabilizing: the workload is left alone, and its hash is watched.
	AssessmentStabilizing AssessmentPhase = "Stabilizing"
	// AssessmentAssessing: the components are measured.
	AssessmentAssessing AssessmentPhase = "Assessing"
	// AssessmentCompleted: the assessment has a reason and a verdict.
	AssessmentCompleted AssessmentPhase = "Completed"
	// AssessmentFailed: the spec cannot be carried out; message tells why.
	AssessmentFailed AssessmentPhase = "Failed"
)

// AssessmentReason says how an assessment was completed.
// +kubebuilder:validation:Enum=Full;Partial;Expired;NoExecution;MetricsTimedOut;SpecDrift;AlertDecayTimeout
// +kubebuilder:validation:MaxLength=32
type AssessmentReason string

// The reasons.
const (
	// AssessedFull: each component that is configured has an answer.
	AssessedFull AssessmentReason = "Full"
	// AssessedPartial: an answer was missing at the deadline.
	AssessedPartial AssessmentReason = "Partial"
	// AssessedExpired: no component had an answer at the deadline.
	AssessedExpired AssessmentReason = "Expired"
	// AssessedNoExecution: the target was not written.
	AssessedNoExecution AssessmentReason = "NoExecution"
	// AssessedMetricsTimedOut: the metrics alone were missing at the deadline.
	AssessedMetricsTimedOut AssessmentReason = "MetricsTimedOut"
	// AssessedSpecDrift: another writer changed the target before the assessment was completed.
	AssessedSpecDrift AssessmentReason = "SpecDrift"
	// AssessedAlertDecayTimeout: an alert still fired at the deadline, although all else was well.
	AssessedAlertDecayTimeout AssessmentReason = "AlertDecayTimeout"
)

// EffectVerdict says whether a write helped.
// +kubebuilder:validation:Enum=Effective;Ineffective;Inconclusive;Invalidated
// +kubebuilder:validation:MaxLength=16
type EffectVerdict string

// The verdicts.
const (
	// VerdictEffective: the write is in effect, and all is well.
	VerdictEffective EffectVerdict = "Effective"
	// VerdictIneffective: the write is in effect, and did not help.
	VerdictIneffective EffectVerdict = "Ineffective"
	// VerdictInconclusive: too little is known.
	VerdictInconclusive EffectVerdict = "Inconclusive"
	// VerdictInvalidated: the write is not in effect any more.
	VerdictInvalidated EffectVerdict = "Invalidated"
)

// SpecIntegrity says whether the target is as the write left it.
// +kubebuilder:validation:Enum=Unknown;SpecUnchanged;SpecDrifted
// +kubebuilder:validation:MaxLength=16
type SpecIntegrity string

// The integrities.
const (
	// IntegrityUnknown: the target could not be read, or the answer to the write is not known.
	IntegrityUnknown SpecIntegrity = "Unknown"
	// IntegrityUnchanged: the target is as the write left it.
	IntegrityUnchanged SpecIntegrity = "SpecUnchanged"
	// IntegrityDrifted: another writer has changed, removed or replaced the target since.
	IntegrityDrifted SpecIntegrity = "SpecDrifted"
)

// EffectComponent names a measurement of an effect.
// +kubebuilder:validation:Enum=Health;Alerts;Metrics
// +kubebuilder:validation:MaxLength=16
type EffectComponent string

// The components.
const (
	// ComponentHealth is the readiness of the workload, and of its containers.
	ComponentHealth EffectComponent = "Health"
	// ComponentAlerts are the alerts about the workload.
	ComponentAlerts EffectComponent = "Alerts"
	// ComponentMetrics are the metrics of the workload.
	ComponentMetrics EffectComponent = "Metrics"
)

// ComponentState says whether a component was assessed.
// +kubebuilder:validation:Enum=Assessed;NotConfigured;NotAnswered
// +kubebuilder:validation:MaxLength=16
type ComponentState string

// The states.
const (
	// ComponentAssessed: the component has an answer. The score is absent if the question has
	// no score, as for the health of a kind without pods.
	ComponentAssessed ComponentState = "Assessed"
	// ComponentNotConfigured: the installation names no source.
	ComponentNotConfigured ComponentState = "NotConfigured"
	// ComponentNotAnswered: the source was asked, and the answer does not count.
	ComponentNotAnswered ComponentState = "NotAnswered"
)

// ComponentEffect says whether a component speaks for the write.
// +kubebuilder:validation:Enum=For;Against
// +kubebuilder:validation:MaxLength=16
type ComponentEffect string

// The effects.
const (
	// EffectFor: the component does not speak against the write.
	EffectFor ComponentEffect = "For"
	// EffectAgainst: the component makes the verdict Ineffective by itself.
	EffectAgainst ComponentEffect = "Against"
)

// AlertDecay is the state of alerts that fired before the write.
// +kubebuilder:validation:Enum=Active;Resolved;TimedOut
// +kubebuilder:validation:MaxLength=16
type AlertDecay string

// The decays.
const (
	// DecayActive: each alert that fires is one of before the write, and may be about to resolve.
	DecayActive AlertDecay = "Active"
	// DecayResolved: no alert of before the write fires any more.
	DecayResolved AlertDecay = "Resolved"
	// DecayTimedOut: such an alert still fired at the deadline.
	DecayTimedOut AlertDecay = "TimedOut"
)

// Conditions of an EffectivenessAssessment beside Ready.
const (
	// ConditionAssessmentComplete: the assessment has ended; its reason is that of the end.
	ConditionAssessmentComplete = "AssessmentComplete"
	// ConditionSpecIntegrity: the target is as the write left it.
	ConditionSpecIntegrity = "SpecIntegrity"
	// ConditionAlertDecayDetected: an alert of before the write still fires.
	ConditionAlertDecayDetected = "AlertDecayDetected"
	// ConditionPostHashCaptured: the hash of the answer to the write is known.
	ConditionPostHashCaptured = "PostHashCaptured"
)

// AssessmentSchedule has the instants of an assessment, by the API server's time.
type AssessmentSchedule struct {
	// propagatedTime is when the write counts as arrived.
	// +required
	PropagatedTime metav1.Time `json:"propagatedTime,omitempty,omitzero"`
	// stabilizedTime is from when on components are measured.
	// +required
	StabilizedTime metav1.Time `json:"stabilizedTime,omitempty,omitzero"`
	// alertsTime is from when on alerts are asked for.
	// +required
	AlertsTime metav1.Time `json:"alertsTime,omitempty,omitzero"`
	// deadlineTime is when the assessment expires.
	// +required
	DeadlineTime metav1.Time `json:"deadlineTime,omitempty,omitzero"`
}

// MeasuredHealth counts the pods of the target by their state. Pods that are being deleted, or
// have finished, do not count.
type MeasuredHealth struct {
	// desired is the number of pods that the workload asks for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Desired int32 `json:"desired"`
	// pods is the number of pods that exist.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods int32 `json:"pods"`
	// ready is the number of pods with only ready containers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready int32 `json:"ready"`
	// crashLooping is the number of pods with a container that waits for its next start.
	// +optional
	// +kubebuilder:validation:Minimum=0
	CrashLooping int32 `json:"crashLooping"`
	// outOfMemory is the number of pods with a container that ran out of memory since the write.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OutOfMemory int32 `json:"outOfMemory"`
	// restarted is the number of pods with a container that ended since the write.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Restarted int32 `json:"restarted"`
}

// AssessedComponent is the measurement of one component.
type AssessedComponent struct {
	// name is the name of the component.
	// +required
	Name EffectComponent `json:"name,omitempty"`
	// state says whether the component was assessed.
	// +required
	State ComponentState `json:"state,omitempty"`
	// score is the score in basis points; absent without a score.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Score *int32 `json:"score,omitempty"`
	// effect says whether the component speaks for the write; absent if it was not assessed.
	// +optional
	Effect ComponentEffect `json:"effect,omitempty"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// health is the measurement of the component Health.
	// +optional
	Health *MeasuredHealth `json:"health,omitempty"`
	// alerts is the measurement of the component Alerts.
	// +optional
	Alerts *MeasuredAlerts `json:"alerts,omitempty"`
	// metrics are the measurement of the component Metrics.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Metrics []MeasuredMetric `json:"metrics,omitempty"`
}

// EffectivenessAssessmentStatus is the measured effect of a write.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.phase) || !(oldSelf.phase in ['Completed', 'Failed']) || (has(self.phase) && self.phase == oldSelf.phase)",message="an assessment that has ended stays so",fieldPath=".phase"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.verdict) || (has(self.verdict) && self.verdict == oldSelf.verdict)",message="a verdict stays",fieldPath=".verdict"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.reason) || (has(self.reason) && self.reason == oldSelf.reason)",message="the reason of an end stays",fieldPath=".reason"
type EffectivenessAssessmentStatus struct {
	// conditions are Ready, AssessmentComplete, SpecIntegrity, AlertDecayDetected and
	// PostHashCaptured.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is the phase of the assessment.
	// +optional
	Phase AssessmentPhase `json:"phase,omitempty"`
	// schedule has the instants of the assessment; absent if the target was not written.
	// +optional
	Schedule *AssessmentSchedule `json:"schedule,omitempty"`
	// integrity says whether the target is as the write left it.
	// +optional
	Integrity SpecIntegrity `json:"integrity,omitempty"`
	// currentHash is the guarded hash of the target that was read last; absent if it was not there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	CurrentHash string `json:"currentHash,omitempty"`
	// alertsBefore are the alerts of before the write; absent as long as no answer has told them.
	// +optional
	AlertsBefore *AlertsBefore `json:"alertsBefore,omitempty"`
	// components are the components that were asked for.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=3
	Components []AssessedComponent `json:"components,omitempty"`
	// askedTime is when the components were asked for. A later question with the same answers is stored with the
	// next change alone.
	// +optional
	AskedTime *metav1.Time `json:"askedTime,omitempty"`
	// alertDecay is the state of alerts that fired before the write; absent if no such alert
	// fired after the stabilization.
	// +optional
	AlertDecay AlertDecay `json:"alertDecay,omitempty"`
	// reason is the reason of the end.
	// +optional
	Reason AssessmentReason `json:"reason,omitempty"`
	// verdict says whether the write helped.
	// +optional
	Verdict EffectVerdict `json:"verdict,omitempty"`
	// score is the score in basis points; absent if no component has one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Score *int32 `json:"score,omitempty"`
	// formula is the version of the formula that computed score from the components.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Formula int32 `json:"formula,omitempty"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// sideEffects are the objects beside the target that became worse since the write. They
	// lower no score.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	SideEffects []string `json:"sideEffects,omitempty"`
	// completionTime is when the assessment ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}
