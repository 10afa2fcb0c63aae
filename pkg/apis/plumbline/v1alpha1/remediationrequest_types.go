// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequestedTarget is one drifted object that a person asks to remediate.
type RequestedTarget struct {
	// baselineName is the name of the object's Baseline.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BaselineName string `json:"baselineName,omitempty"`
	// driftedHash is the guarded hash that the person saw; an object in any other
	// state is left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	DriftedHash string `json:"driftedHash,omitempty"`
	// revision names the BaselineRevision that a rollback leads to. If unset, the last state
	// that was ready.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
}

// RemediationRequestSpec is the request of a person to a policy.
type RemediationRequestSpec struct {
	// policyName is the RemediationPolicy with the planner, limits and action that count.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PolicyName string `json:"policyName,omitempty"`
	// targets are the objects to remediate.
	// +required
	// +listType=map
	// +listMapKey=baselineName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Targets []RequestedTarget `json:"targets,omitempty"`
	// requestedBy must be the authenticated user that creates the request. The plan is bound by
	// the permissions of that user, and of the author of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// requestedByGroups are groups of that user that give the plan their permissions; each must
	// be one of the authenticated user's.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	RequestedByGroups []string `json:"requestedByGroups,omitempty"`
	// reason is for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// RequestOutcome is the answer to a request.
// +kubebuilder:validation:Enum=Planned;Refused
// +kubebuilder:validation:MaxLength=16
type RequestOutcome string

// The outcomes.
const (
	// RequestPlanned: a plan has at least one of the targets.
	RequestPlanned RequestOutcome = "Planned"
	// RequestRefused: no plan was made.
	RequestRefused RequestOutcome = "Refused"
)

// RemediationRequestStatus is the answer of the assessor; it is written once.
type RemediationRequestStatus struct {
	// observedGeneration is the generation the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// outcome is the outcome of the request; absent until it is answered.
	// +optional
	Outcome RequestOutcome `json:"outcome,omitempty"`
	// planName is the plan that was made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PlanName string `json:"planName,omitempty"`
	// message says why the request as a whole was refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
	// leftOut are the targets that the plan does not have, and why.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// answerTime is when the request was answered.
	// +optional
	AnswerTime *metav1.Time `json:"answerTime,omitempty"`
}

// RemediationRequest asks a policy, in the name of a person, to put drifted objects of
// its namespace back now.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=remediationrequests,categories=plumbline,shortName=rreq
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policyName`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.requestedBy`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.status.planName`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RemediationRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the request; immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a RemediationRequest is immutable; create another"
	Spec RemediationRequestSpec `json:"spec,omitzero"`
	// status is the answer.
	// +optional
	Status RemediationRequestStatus `json:"status,omitempty,omitzero"`
}

// RemediationRequestList is a list of RemediationRequests.
// +kubebuilder:object:root=true
type RemediationRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemediationRequest `json:"items"`
}
