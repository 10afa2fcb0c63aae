// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AssessedStep is the step of a RemediationPlan that an assessment is about.
type AssessedStep struct {
	// name is the name of the plan, in the namespace of the assessment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// step is the index of the target.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Step int32 `json:"step"`
}

// AssessedRun is the run of an ABRelease that an assessment is about.
type AssessedRun struct {
	// name is the name of the release, in the namespace of the assessment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// run is the number of the run.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
}

// AssessmentSubject is the assessed step or run. It has one of its fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.plan) != has(self.release)",message="name the step of the plan that is assessed, or the run of the release",fieldPath=".plan"
type AssessmentSubject struct {
	// plan is the assessed plan, with its step.
	// +optional
	Plan *AssessedStep `json:"plan,omitempty"`
	// release is the assessed release, with its run.
	// +optional
	Release *AssessedRun `json:"release,omitempty"`
}

// AssessedAction is the assessed action: an action of a RemediationPolicy, or the end of a run
// of a release.
// +kubebuilder:validation:Enum=NotifyOnly;Reconcile;Rollback;Scale;Restart;Quarantine;Promote
// +kubebuilder:validation:MaxLength=16
type AssessedAction string

// The actions. Those of a step of a plan are those of RemediationAction.
const (
	AssessedNotifyOnly AssessedAction = "NotifyOnly"
	AssessedReconcile  AssessedAction = "Reconcile"
	// AssessedRollback: of a step, that of ActionRollback; of a run, the active variation got all requests back.
	AssessedRollback   AssessedAction = "Rollback"
	AssessedScale      AssessedAction = "Scale"
	AssessedRestart    AssessedAction = "Restart"
	AssessedQuarantine AssessedAction = "Quarantine"
	// AssessedPromote: the canary got all requests, and its revision stays.
	AssessedPromote AssessedAction = "Promote"
)

// AssessedPolicy is the RemediationPolicy by which the subject was carried out.
type AssessedPolicy struct {
	// name is the name of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// AssessedTarget is the object that was written.
type AssessedTarget struct {
	BaselineTarget `json:",inline"`
	// baselineName is the name of the Baseline of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BaselineName string `json:"baselineName,omitempty"`
	// uid is the UID of the object after the write; absent if no object was written.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// AssessedSignal is the object that alerts and metrics are about.
type AssessedSignal struct {
	// apiVersion is the API version of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// namespace is the namespace of the object. If unset, that of the assessment.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Execution says whether the subject wrote its target.
// +kubebuilder:validation:Enum=Executed;NoExecution
// +kubebuilder:validation:MaxLength=16
type Execution string

// The executions.
const (
	// ExecutionDone: the target was written, or may have been written.
	ExecutionDone Execution = "Executed"
	// ExecutionNone: the target was not written.
	ExecutionNone Execution = "NoExecution"
)

// AssessmentWindows say how long a write is measured.
type AssessmentWindows struct {
	// stabilization is how long the workload is left alone before it is measured.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 5m, from 0s to 24h"
	Stabilization *metav1.Duration `json:"stabilization,omitempty"`
	// validity is how long an answer that is missing is waited for.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 30m, from 0s to 24h"
	Validity *metav1.Duration `json:"validity,omitempty"`
	// alertCheckDelay is how long after the stabilization alerts are asked for.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 5m, from 0s to 24h"
	AlertCheckDelay *metav1.Duration `json:"alertCheckDelay,omitempty"`
	// propagationDelay is how long the write needs to arrive.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 3m, from 0s to 24h"
	PropagationDelay *metav1.Duration `json:"propagationDelay,omitempty"`
}

// DDEM002Hashes are the hashes of DD-EM-002 of a target, over all of its spec.
type DDEM002Hashes struct {
	// preHash is that before the write; absent if it is not known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PreHash string `json:"preHash,omitempty"`
	// postHash is that of the API server's answer to the write; absent if it is not known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PostHash string `json:"postHash,omitempty"`
}

// EffectivenessAssessmentSpec is the subject of an assessment. The assessor writes it when the
// step, or the run, has ended.
//
// +kubebuilder:validation:XValidation:rule="!has(self.subject.plan) || has(self.policy)",message="the step of a plan has a policy",fieldPath=".policy"
// +kubebuilder:validation:XValidation:rule="self.execution != 'Executed' || has(self.writtenTime)",message="an execution has a time",fieldPath=".writtenTime"
type EffectivenessAssessmentSpec struct {
	// subject is the assessed step or run.
	// +required
	Subject AssessmentSubject `json:"subject,omitzero"`
	// policy is the policy by which the subject was carried out; absent for the run of a
	// release.
	// +optional
	Policy AssessedPolicy `json:"policy,omitempty,omitzero"`
	// correlationID is that of the plan, or the uid of the release.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	CorrelationID string `json:"correlationID,omitempty"`
	// requestedBy is the user with the permissions of the write, or the author of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// action is the action that was taken.
	// +required
	Action AssessedAction `json:"action,omitempty"`
	// target is the object that was written; for the run of a release, the workload that serves the
	// requests after it.
	// +required
	Target AssessedTarget `json:"target,omitzero"`
	// signal is the object that alerts and metrics are about; for the run of a release, its Service.
	// +required
	Signal AssessedSignal `json:"signal,omitzero"`
	// driftTime is when the drift was first seen, or when the run began.
	// +required
	DriftTime metav1.Time `json:"driftTime,omitempty,omitzero"`
	// preHash is the guarded hash of the target before the write. For the run of a release, it
	// is the hash of the pod template that the run led away from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PreHash string `json:"preHash,omitempty"`
	// postHash is the guarded hash of the API server's answer to the write. For the run of a
	// release, it is the hash of the pod template that serves the requests after it. It is
	// absent if it is not known.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PostHash string `json:"postHash,omitempty"`
	// postGeneration is the generation of that answer; absent if the kind has no generation.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PostGeneration int64 `json:"postGeneration,omitempty"`
	// ddem002 has the hashes of DD-EM-002 before and after the write, for comparison with
	// systems that use them; absent unless the policy asks for them. They decide no verdict.
	// +optional
	DDEM002 *DDEM002Hashes `json:"ddem002,omitempty"`
	// execution says whether the target was written.
	// +required
	Execution Execution `json:"execution,omitempty"`
	// writtenTime is when the target was written, by the API server, or when the run ended.
	// +optional
	WrittenTime *metav1.Time `json:"writtenTime,omitempty"`
	// windows say how long the write is measured.
	// +required
	Windows AssessmentWindows `json:"windows,omitzero"`
	// alerts say which alerts are about the signal; as in the policy.
	// +optional
	Alerts *EffectAlerts `json:"alerts,omitempty"`
	// metrics are the metrics of the signal; as in the policy.
	// +optional
	Metrics *EffectMetrics `json:"metrics,omitempty"`
}

// EffectivenessAssessment says whether a write of Plumbline helped, and whether the write is still
// in effect. The phase of a plan says only that it was written.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=effectivenessassessments,categories=plumbline,shortName=ea
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Score",type=integer,JSONPath=`.status.score`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.target.kind`,priority=1
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`,priority=1
// +kubebuilder:printcolumn:name="Integrity",type=string,JSONPath=`.status.integrity`,priority=1
// +kubebuilder:printcolumn:name="Deadline",type=string,JSONPath=`.status.schedule.deadlineTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EffectivenessAssessment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the subject of the assessment; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the subject of an assessment is immutable"
	Spec EffectivenessAssessmentSpec `json:"spec,omitzero"`
	// status is the measured effect.
	// +optional
	Status EffectivenessAssessmentStatus `json:"status,omitempty,omitzero"`
}

// EffectivenessAssessmentList is a list of EffectivenessAssessments.
// +kubebuilder:object:root=true
type EffectivenessAssessmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EffectivenessAssessment `json:"items"`
}
