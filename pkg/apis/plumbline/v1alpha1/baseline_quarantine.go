// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonQuarantined is the reason of the Degraded condition of a Baseline with its object in
// quarantine.
const ReasonQuarantined = "Quarantined"

// Quarantine says that a workload gets no new requests.
type Quarantine struct {
	// startTime is when it began.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// by names the requester, as a user or as RemediationPlan/name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`
	// uid is the UID of the object in quarantine. The quarantine ends if another object has its
	// name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// token names this quarantine among all of the object: the uid of a plan, a hyphen, and the
	// index of the step.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Token string `json:"token,omitempty"`
	// reason is the reason in words.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// QuarantineEnd says why a quarantine ended.
// +kubebuilder:validation:Enum=InSync;Accepted;Gone;Replaced;NotGuarded;Lifted
type QuarantineEnd string

// The ends.
const (
	// QuarantineInSync: the object is in sync again, or its state was accepted.
	QuarantineInSync QuarantineEnd = "InSync"
	// QuarantineAccepted: the state of the object was accepted, and is too large to be kept.
	QuarantineAccepted QuarantineEnd = "Accepted"
	// QuarantineGone: the object is gone.
	QuarantineGone QuarantineEnd = "Gone"
	// QuarantineReplaced: another object has its name.
	QuarantineReplaced QuarantineEnd = "Replaced"
	// QuarantineNotGuarded: no guard selects the object any more.
	QuarantineNotGuarded QuarantineEnd = "NotGuarded"
	// QuarantineLifted: a person lifted the quarantine.
	QuarantineLifted QuarantineEnd = "Lifted"
)

// EndedQuarantine is the last quarantine of an object that ended.
type EndedQuarantine struct {
	// token is the token of the quarantine.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Token string `json:"token,omitempty"`
	// endTime is when it ended.
	// +required
	EndTime metav1.Time `json:"endTime,omitempty,omitzero"`
	// reason says why it ended.
	// +required
	Reason QuarantineEnd `json:"reason,omitempty"`
	// by is the user that lifted it. If unset, no person did.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`
}

// LiftRequest asks to end a quarantine. Users that may accept the state of the object may lift
// its quarantine.
type LiftRequest struct {
	// token is the token of the quarantine; a request for another quarantine than the present
	// one has no effect.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Token string `json:"token,omitempty"`
	// requestedBy must be the authenticated user that sets it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// requestedByGroups are groups of that user by which a guard may let the user
	// accept; each must be one of the authenticated user's.
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
