// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Origin says how an object came under guard.
// +kubebuilder:validation:Enum=Created;Imported
type Origin string

// The origins.
const (
	// OriginCreated objects were created by a trusted writer, or accepted.
	OriginCreated Origin = "Created"
	// OriginImported objects are older than their guard.
	OriginImported Origin = "Imported"
)

// BaselineTarget names the guarded object.
type BaselineTarget struct {
	// apiVersion is the API version in which the object is read.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the kind of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// AuthorizedRelease is the rollout with the run that authorized a state. The executor made the
// write, on request of the last writer of the ABRelease.
type AuthorizedRelease struct {
	// name is the name of the ABRelease, in the namespace of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// run is the run of the ABRelease.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// workName names the ReleaseWork of the write.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	WorkName string `json:"workName,omitempty"`
}

// AuthorizedState is the authorized content of the object.
type AuthorizedState struct {
	// uid is the UID of the object that was authorized.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// hash is the guarded hash of the authorized body.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// revision names the BaselineRevision that holds the body.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// number counts authorized states of this object, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Number int64 `json:"number,omitempty"`
	// by is the user that authorized it by a write or an acceptance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`
	// authorizationTime is when it was authorized.
	// +required
	AuthorizationTime metav1.Time `json:"authorizationTime,omitempty,omitzero"`
	// origin says how the object came under guard.
	// +required
	Origin Origin `json:"origin,omitempty"`
	// release names the run that authorized it in the name of by. If unset, no run did.
	// +optional
	Release *AuthorizedRelease `json:"release,omitempty"`
}

// AcceptRequest asks to authorize the observed state.
type AcceptRequest struct {
	// hash is the observed guarded hash that is accepted; a request for any other state than
	// the observed one has no effect.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
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

// BaselineSpec holds the authorized content, and requests by people.
type BaselineSpec struct {
	// target names the object; immutable but for the version in which the object is
	// judged.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.kind == oldSelf.kind && self.apiVersion.split('/')[0] == oldSelf.apiVersion.split('/')[0]",message="target is immutable, but for the version"
	Target BaselineTarget `json:"target,omitzero"`
	// authorized is the authorized state; written by the assessor alone. Absent for an object
	// that no trusted writer has created.
	// +optional
	Authorized *AuthorizedState `json:"authorized,omitempty"`
	// accept asks to authorize the observed state. A person may set accept and lift alone.
	// +optional
	Accept *AcceptRequest `json:"accept,omitempty"`
	// lift asks to end the quarantine of the object.
	// +optional
	Lift *LiftRequest `json:"lift,omitempty"`
}

// DriftState is the state of a guarded object.
// +kubebuilder:validation:Enum=InSync;Drifted;Missing;Unknown;Retired;NotGuarded
type DriftState string

// The drift states.
const (
	// StateInSync: the object has the authorized content.
	StateInSync DriftState = "InSync"
	// StateDrifted: something differs.
	StateDrifted DriftState = "Drifted"
	// StateMissing: the object is gone and no trusted writer removed it.
	StateMissing DriftState = "Missing"
	// StateUnknown: the object could not be read, or its body or status could not be
	// kept; the last findings stand.
	StateUnknown DriftState = "Unknown"
	// StateRetired: a trusted writer removed the object: see status.retirementTime.
	StateRetired DriftState = "Retired"
	// StateNotGuarded: no guard selects the object any more; the last findings stand.
	StateNotGuarded DriftState = "NotGuarded"
)

// ReasonBodyLost is the reason of the Ready condition of a Baseline with a lost authorized body.
// Its state is Unknown until a person accepts the observed state (status.observed.hash).
const ReasonBodyLost = "BodyLost"

// ReasonBodyTooLarge is the reason of the Ready condition of a Baseline with an authorized body
// that is too large for a BaselineRevision: see status.oversized.
const ReasonBodyTooLarge = "BodyTooLarge"

// ReasonStatusTooLarge is the reason of the Ready condition of a Baseline with a status that the
// API server rejects as too large. The status names the object and its first finding, and leaves
// the rest out.
const ReasonStatusTooLarge = "StatusTooLarge"

// ReasonStatusRefused is the same where the API server calls the status invalid.
const ReasonStatusRefused = "StatusRefused"

// ReasonNotGuarded is the reason of the Ready condition of a Baseline in state
// NotGuarded.
const ReasonNotGuarded = "NotGuarded"

// ReadyRevision is an authorized state that was seen to work.
type ReadyRevision struct {
	// revision names the BaselineRevision that holds the body.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// hash is the guarded hash of that body.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// readyTime is when the object was first seen to be as that revision says, and ready.
	// +required
	ReadyTime metav1.Time `json:"readyTime,omitempty,omitzero"`
}

// BaselineStatus is the observed state.
type BaselineStatus struct {
	// conditions are Ready, Degraded (reasons Contended and Quarantined), Recreatable and AcceptanceAllowed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of this Baseline the status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state is the state of the object.
	// +optional
	State DriftState `json:"state,omitempty"`
	// observed is the object at the last read.
	// +optional
	Observed ObservedState `json:"observed,omitzero"`
	// oversized is the newest authorized state if its body is too large for a
	// BaselineRevision. The state is Unknown for as long; spec.authorized names the
	// state before, if there is one.
	// +optional
	Oversized *OversizedBody `json:"oversized,omitempty"`
	// findings are the differences, worst first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Findings []Finding `json:"findings,omitempty"`
	// findingsTotal counts all findings, those that are left out included. A status
	// larger than 128 KiB as JSON is cut, beginning with the places of reversals and the
	// values of findings.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FindingsTotal int32 `json:"findingsTotal,omitempty"`
	// masks are paths moved by expected writers.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	Masks []Mask `json:"masks,omitempty"`
	// severity is the severity of the drift, absent when in sync.
	// +optional
	Severity *Severity `json:"severity,omitempty"`
	// firstSeenTime is when the present drift began.
	// +optional
	FirstSeenTime *metav1.Time `json:"firstSeenTime,omitempty"`
	// lastCheckTime is when the object was last read past the watch, or seen to change;
	// the time to the next check counts from here.
	// +optional
	LastCheckTime *metav1.Time `json:"lastCheckTime,omitempty"`
	// nextCheckTime is when the next scheduled check is due.
	// +optional
	NextCheckTime *metav1.Time `json:"nextCheckTime,omitempty"`
	// checkRequested is the value of the annotation plumbline.dev/check-requested
	// that the last check answered.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CheckRequested string `json:"checkRequested,omitempty"`
	// lastReady is the newest authorized state in which the object was ready; a
	// rollback leads to it and nowhere else.
	// +optional
	LastReady *ReadyRevision `json:"lastReady,omitempty"`
	// reversals are the last changes to and fro, oldest first: three of them at one
	// place within ten minutes are a fight.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Reversals []Reversal `json:"reversals,omitempty"`
	// contention names two writers that revert each other, absent without contention.
	// +optional
	Contention *Contention `json:"contention,omitempty"`
	// guards are the guards that select the object, as SpecGuard/name or ClusterSpecGuard/name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=320
	Guards []string `json:"guards,omitempty"`
	// selection remembers by which labels the guards select the object.
	// +optional
	Selection *Selection `json:"selection,omitempty"`
	// retirementTime is when a trusted writer removed the object; the Baseline is kept for a
	// retention time and then removed.
	// +optional
	RetirementTime *metav1.Time `json:"retirementTime,omitempty"`
	// planName names the RemediationPlan that holds the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PlanName string `json:"planName,omitempty"`
	// fences counts the writes of executors that change no other field. Each makes sure that no
	// earlier request that is still under way begins a quarantine.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Fences int64 `json:"fences,omitempty"`
	// quarantine keeps new requests away from the object's pods, where proxies of
	// Plumbline send them.
	// +optional
	Quarantine *Quarantine `json:"quarantine,omitempty"`
	// endedQuarantine is the last quarantine that ended. If unset, no write did.
	// +optional
	EndedQuarantine *EndedQuarantine `json:"endedQuarantine,omitempty"`
}

// Baseline holds the authorized content of one guarded object, and its observed state.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=plumbline
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.target.kind`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.target.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Severity",type=string,JSONPath=`.status.severity.level`
// +kubebuilder:printcolumn:name="Actor",type=string,JSONPath=`.status.findings[0].actor.user`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.status.findings[0].path`
// +kubebuilder:printcolumn:name="Drift-Age",type=date,JSONPath=`.status.firstSeenTime`
// +kubebuilder:printcolumn:name="Authorized-By",type=string,JSONPath=`.spec.authorized.by`,priority=1
// +kubebuilder:printcolumn:name="Score",type=integer,JSONPath=`.status.severity.score`,priority=1
// +kubebuilder:printcolumn:name="Hash",type=string,JSONPath=`.status.observed.hash`,priority=1
// +kubebuilder:printcolumn:name="Last-Check",type=date,JSONPath=`.status.lastCheckTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,priority=1
type Baseline struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the authorized content.
	// +required
	Spec BaselineSpec `json:"spec,omitzero"`
	// status is the observed state.
	// +optional
	Status BaselineStatus `json:"status,omitempty,omitzero"`
}

// BaselineList is a list of Baselines.
// +kubebuilder:object:root=true
type BaselineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Baseline `json:"items"`
}
