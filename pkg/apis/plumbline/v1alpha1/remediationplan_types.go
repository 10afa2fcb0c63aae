// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlanPolicy is the policy a plan was made by, as it was then.
type PlanPolicy struct {
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
	// generation is the generation of the policy.
	// +required
	// +kubebuilder:validation:Minimum=1
	Generation int64 `json:"generation,omitempty"`
	// digest is the digest of its spec.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
}

// PlanTarget is one object that a plan writes, and its content after the write.
type PlanTarget struct {
	BaselineTarget `json:",inline"`
	// baselineName is the name of the Baseline with the drift in its status.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BaselineName string `json:"baselineName,omitempty"`
	// uid is the UID of the object; empty for one that is gone and is to be made again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// driftedHash is the guarded hash that it has; anything else is left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DriftedHash string `json:"driftedHash,omitempty"`
	// desiredHash is the guarded hash that it is to have.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DesiredHash string `json:"desiredHash,omitempty"`
	// revision names the BaselineRevision that the desired values come from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// revisionHash is that revision's hash; any other content is refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	RevisionHash string `json:"revisionHash,omitempty"`
	// paths are the paths that are remediated; empty for a whole object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Paths []string `json:"paths,omitempty"`
	// action is the action on this target.
	// +required
	Action RemediationAction `json:"action,omitempty"`
	// severity is the severity of the drift when the plan was made.
	// +required
	Severity Severity `json:"severity,omitzero"`
	// driftType is the drift type of the worst finding.
	// +required
	DriftType DriftType `json:"driftType,omitempty"`
	// firstSeenTime is when the drift began.
	// +required
	FirstSeenTime metav1.Time `json:"firstSeenTime,omitempty,omitzero"`
	// actors are the writers that caused it, worst finding first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Actors []string `json:"actors,omitempty"`
}

// PlanBatch is a set of targets that are written at the same time.
type PlanBatch struct {
	// order is the order of the batch, from 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Order int32 `json:"order"`
	// steps are the indices of its targets.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Steps []int32 `json:"steps,omitempty"`
	// delayAfter is the pause between this batch and the next one.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?h)?([0-9]{1,6}([.][0-9]{1,9})?m)?([0-9]{1,9}([.][0-9]{1,9})?s)?$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="a duration such as 1m, from 0s to 24h"
	DelayAfter *metav1.Duration `json:"delayAfter,omitempty"`
	// requiresHealthCheck is Enabled: the next batch begins only when all of this one are
	// healthy.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == 'Enabled'",message="must be Enabled: each batch waits for the health of the one before"
	RequiresHealthCheck Toggle `json:"requiresHealthCheck,omitempty"`
}

// LeftOut is a drifted object that a plan does not have, and why.
type LeftOut struct {
	// baselineName is the name of the object's Baseline.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BaselineName string `json:"baselineName,omitempty"`
	// reason is the reason in one word.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// PlanRequest is the RemediationRequest that a plan answers.
type PlanRequest struct {
	// name is the name of the request, in the namespace of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the request.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// PlannedRemediation is the remediation of a plan; it never changes.
// +kubebuilder:validation:XValidation:rule="size(self.targets) == 0 || self.batches.exists(b, size(b.steps) == 0) || self.batches.all(b, b.steps.all(s, s >= 0 && s < size(self.targets))) && [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, i >= size(self.targets) || self.batches.exists_one(b, i in b.steps))",message="batches must name each target once, by its index",fieldPath=".batches"
// +kubebuilder:validation:XValidation:rule="self.batches.exists(b, b.order > 9) || [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, i >= size(self.batches) || self.batches[i].order == i)",message="the order of a batch must be its index",fieldPath=".batches"
type PlannedRemediation struct {
	// policy is the policy that the plan was made by.
	// +required
	Policy PlanPolicy `json:"policy,omitzero"`
	// environmentName is the Environment with the ledger that grants the steps.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	EnvironmentName string `json:"environmentName,omitempty"`
	// trigger is the trigger that caused it.
	// +required
	Trigger RemediationTrigger `json:"trigger,omitempty"`
	// strategy is the strategy of its batches.
	// +required
	Strategy RemediationStrategy `json:"strategy,omitempty"`
	// standby says how the standby of each target differs from it; absent but with the strategy
	// BlueGreen.
	// +optional
	Standby *StandbyTemplate `json:"standby,omitempty"`
	// initiatedBy is system:auto, or the requester.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	InitiatedBy string `json:"initiatedBy,omitempty"`
	// request is the request that the plan answers, set by the assessor alone. Such a plan waits
	// for no trigger and no schedule, and needs the right of the policy's author as well.
	// +optional
	Request *PlanRequest `json:"request,omitempty"`
	// requester is the user with the permissions of the plan. A plan of a policy that acts as a
	// service account names system:serviceaccount:<namespace>:<name>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Requester string `json:"requester,omitempty"`
	// requesterGroups are that user's groups, as far as they count.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	RequesterGroups []string `json:"requesterGroups,omitempty"`
	// correlationID is in every event, log line and record about it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	CorrelationID string `json:"correlationID,omitempty"`
	// driftReportID names the drift that it is about. Every plan about the same drift of the
	// same objects has the same one, whichever policy made it, and at whichever attempt.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	DriftReportID string `json:"driftReportID,omitempty"`
	// scheduledTime is when it is to begin; absent for at once.
	// +optional
	ScheduledTime *metav1.Time `json:"scheduledTime,omitempty"`
	// deadlineTime is the time after which no further step begins.
	// +required
	DeadlineTime metav1.Time `json:"deadlineTime,omitempty,omitzero"`
	// targets are the targets in the order in which they are worked on; a step is a target's
	// index.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Targets []PlanTarget `json:"targets,omitempty"`
	// batches are the batches of the targets.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Batches []PlanBatch `json:"batches,omitempty"`
	// leftOut are drifted objects that it does not have.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// leftOutTotal counts all of them.
	// +optional
	// +kubebuilder:validation:Minimum=1
	LeftOutTotal int32 `json:"leftOutTotal,omitempty"`
}

// PlanVerb is a request by a person about a plan.
// +kubebuilder:validation:Enum=Execute;Pause;Cancel
type PlanVerb string

// The verbs. Leaving the request out resumes a paused plan.
const (
	// PlanExecute begins a plan that waits, within the limits.
	PlanExecute PlanVerb = "Execute"
	// PlanPause begins no further step.
	PlanPause PlanVerb = "Pause"
	// PlanCancel ends it; no write follows once it is Canceled.
	PlanCancel PlanVerb = "Cancel"
)

// PlanControl is a request by a person about a plan.
//
// +kubebuilder:validation:XValidation:rule="!has(self.verb) || has(self.requestedBy)",message="name yourself, as the API server knows you (kubectl auth whoami)",fieldPath=".requestedBy"
type PlanControl struct {
	// verb is the verb that is asked for.
	// +optional
	Verb PlanVerb `json:"verb,omitempty"`
	// requestedBy must be the authenticated user that sets it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// RemediationPlanSpec is the remediation of a plan, and a request by a person.
type RemediationPlanSpec struct {
	// plan is the remediation; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a plan never changes; cancel it, and another is made"
	Plan PlannedRemediation `json:"plan,omitzero"`
	// control is a request by a person, and the only field that a person may set.
	// +optional
	Control PlanControl `json:"control,omitzero"`
}

// RemediationPlan puts some drifted objects of one namespace back.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=remediationplans,categories=plumbline,shortName=rplan
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.plan.policy.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Targets",type=integer,JSONPath=`.status.counts.total`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.counts.succeeded`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`
// +kubebuilder:printcolumn:name="Effect",type=string,JSONPath=`.status.effect`
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.deferralReason`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.plan.initiatedBy`,priority=1
// +kubebuilder:printcolumn:name="Acts-As",type=string,JSONPath=`.spec.plan.requester`,priority=1
// +kubebuilder:printcolumn:name="Scheduled-For",type=string,JSONPath=`.spec.plan.scheduledTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RemediationPlan struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the remediation, and a request by a person.
	// +required
	Spec RemediationPlanSpec `json:"spec,omitzero"`
	// status is how far it is.
	// +optional
	Status RemediationPlanStatus `json:"status,omitempty,omitzero"`
}

// RemediationPlanList is a list of RemediationPlans.
// +kubebuilder:object:root=true
type RemediationPlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemediationPlan `json:"items"`
}
