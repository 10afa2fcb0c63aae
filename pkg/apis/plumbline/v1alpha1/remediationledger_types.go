// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StepReference names one step of one plan.
type StepReference struct {
	// namespace is the namespace of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// planName is the name of the plan.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PlanName string `json:"planName,omitempty"`
	// planUID is the plan's uid.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PlanUID string `json:"planUID,omitempty"`
	// step is the step of the plan, from 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Step int32 `json:"step"`
}

// LedgerOutcome says how a granted step ended.
// +kubebuilder:validation:Enum=Succeeded;Failed;Stopped
type LedgerOutcome string

// The outcomes. A step that did not write has no entry.
const (
	// LedgerSucceeded: the target is as desired, and healthy.
	LedgerSucceeded LedgerOutcome = "Succeeded"
	// LedgerFailed: it is not, or the state is unknown.
	LedgerFailed LedgerOutcome = "Failed"
	// LedgerStopped: it was written, and its plan ended before the result was known. The limits
	// count it, and the circuit breaker does not.
	LedgerStopped LedgerOutcome = "Stopped"
)

// LedgerEntry is one granted step.
type LedgerEntry struct {
	StepReference `json:",inline"`
	// policyUID is the uid of the policy that the step belongs to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PolicyUID string `json:"policyUID,omitempty"`
	// targetUID is the uid of the object that the step writes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	TargetUID string `json:"targetUID,omitempty"`
	// epoch is the epoch of the plan when the step was granted last. An executor of an earlier
	// epoch cannot take the entry back.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch,omitempty"`
	// failureThreshold is how many failures in a row open the circuit breaker, as the
	// policy said when the step was granted. It is absent in the ledger of the whole
	// cluster, which has no circuit breakers.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// verdictTimeoutSeconds is how long after the end of the step the circuit breaker waits for
	// the verdict on its effect. It is absent for a step of which no effect is assessed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	VerdictTimeoutSeconds int32 `json:"verdictTimeoutSeconds,omitempty"`
	// reservationTime is when it was granted.
	// +required
	ReservationTime metav1.Time `json:"reservationTime,omitempty,omitzero"`
	// completionTime is when the step ended; it is absent while the step may still write.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// outcome is the outcome of the step, once the step has ended.
	// +optional
	Outcome LedgerOutcome `json:"outcome,omitempty"`
	// breakerState is the state of the circuit breaker after the verdict on the effect of the
	// step. It is absent for a step with a verdict that did not change the breaker.
	// +optional
	BreakerState BreakerState `json:"breakerState,omitempty"`
}

// BreakerState is the state of a circuit breaker.
// +kubebuilder:validation:Enum=Closed;Open;HalfOpen
type BreakerState string

// The states of a circuit breaker.
const (
	// BreakerClosed lets steps through.
	BreakerClosed BreakerState = "Closed"
	// BreakerOpen lets no remediation through.
	BreakerOpen BreakerState = "Open"
	// BreakerHalfOpen has let one through, and waits for its end, and then for the verdict on
	// its effect.
	BreakerHalfOpen BreakerState = "HalfOpen"
)

// LedgerBreaker is the circuit breaker of one policy.
type LedgerBreaker struct {
	// policyUID is the uid of the policy.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PolicyUID string `json:"policyUID,omitempty"`
	// state is the state of the breaker.
	// +required
	State BreakerState `json:"state,omitempty"`
	// generation counts how often it opened.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`
	// failures is the number of failures in a row.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Failures int32 `json:"failures,omitempty"`
	// lastOpenTime is when it opened last.
	// +optional
	LastOpenTime *metav1.Time `json:"lastOpenTime,omitempty"`
	// probe is the step it lets through while it is half open.
	// +optional
	Probe *StepReference `json:"probe,omitempty"`
	// verdictDeadlineTime is until when a half-open breaker waits for the verdict on the effect
	// of its probe, which has ended well. An Effective verdict alone closes the breaker.
	// +optional
	VerdictDeadlineTime *metav1.Time `json:"verdictDeadlineTime,omitempty"`
}

// EvidenceChain is how far the signed records of one policy go, or those of the releases of an
// Environment. Otherwise a user that can write to the store of the records could cut off their
// end unseen.
type EvidenceChain struct {
	// policyUID is the uid of the policy. Of the chain of releases it is the uid of the
	// Environment, or of Plumbline's namespace for releases that belong to no Environment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PolicyUID string `json:"policyUID,omitempty"`
	// sequence is the sequence of the last record.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// digest is the digest of the last record.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
}

// LedgerHalt stops all remediation that a ledger grants.
type LedgerHalt struct {
	// requestedBy must be the authenticated user that sets it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// LedgerOverride is a person's decision that a ledger may grant although it does not know the
// grants before it.
type LedgerOverride struct {
	// requestedBy must be the authenticated user that sets it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is for people.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
}

// RemediationLedgerSpec names the Environment of a ledger, and holds requests by people.
type RemediationLedgerSpec struct {
	// scope is Environment for the ledger of one Environment, which has its name,
	// and Cluster for the one that bounds all of them together.
	// +required
	// +kubebuilder:validation:Enum=Environment;Cluster
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scope is immutable"
	Scope string `json:"scope,omitempty"`
	// halt stops all grants of this ledger, also those under way.
	// +optional
	Halt *LedgerHalt `json:"halt,omitempty"`
	// override lets a ledger grant that would have to wait.
	// +optional
	Override *LedgerOverride `json:"override,omitempty"`
}

// RemediationLedgerStatus lists the grants and their ends. One write of it is one
// compare-and-swap, so no limit is ever passed by two at once.
type RemediationLedgerStatus struct {
	// sequence counts the writes of this status, from 1. Mirrors are compared by it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="a ledger never goes back"
	Sequence int64 `json:"sequence,omitempty"`
	// grantStartTime is the time from which the ledger grants steps, because the steps
	// before its creation are unknown. If unset, the ledger grants steps.
	// +optional
	GrantStartTime *metav1.Time `json:"grantStartTime,omitempty"`
	// entries are the entries of the last 24 hours, and those that have not ended, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Entries []LedgerEntry `json:"entries,omitempty"`
	// breakers are the breakers of the policies.
	// +optional
	// +listType=map
	// +listMapKey=policyUID
	// +kubebuilder:validation:MaxItems=256
	Breakers []LedgerBreaker `json:"breakers,omitempty"`
	// chains are the chains of the policies' evidence, and of that of releases.
	// +optional
	// +listType=map
	// +listMapKey=policyUID
	// +kubebuilder:validation:MaxItems=256
	Chains []EvidenceChain `json:"chains,omitempty"`
}

// RemediationLedger lists the grants of remediations, in Plumbline's own namespace; only the
// executor writes it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=remediationledgers,categories=plumbline,shortName=rled
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Halted-By",type=string,JSONPath=`.spec.halt.requestedBy`
// +kubebuilder:printcolumn:name="Sequence",type=integer,JSONPath=`.status.sequence`
// +kubebuilder:printcolumn:name="Grants-From",type=string,JSONPath=`.status.grantStartTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RemediationLedger struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names its Environment, and holds requests by people.
	// +required
	Spec RemediationLedgerSpec `json:"spec,omitzero"`
	// status lists the grants.
	// +optional
	Status RemediationLedgerStatus `json:"status,omitempty,omitzero"`
}

// RemediationLedgerList is a list of RemediationLedgers.
// +kubebuilder:object:root=true
type RemediationLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RemediationLedger `json:"items"`
}
