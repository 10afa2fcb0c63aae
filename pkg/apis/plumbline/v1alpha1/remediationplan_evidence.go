// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// StepArtifacts names the contents of a write that are kept beside the records, by their
// digests. Values that look like secrets are replaced in each of them.
type StepArtifacts struct {
	// before is the target as it was; absent for one that is to be made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Before string `json:"before,omitempty"`
	// authorized is the authorized state that the values come from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Authorized string `json:"authorized,omitempty"`
	// written is the target as the write leaves it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Written string `json:"written,omitempty"`
}

// StepEvidence names the signed record of a step.
type StepEvidence struct {
	// sequence is the sequence in the policy's chain.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence,omitempty"`
	// digest is the digest of the record.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
}

// PlanDecision names the signed record of the last decision about a plan.
type PlanDecision struct {
	StepEvidence `json:",inline"`
	// withdraws are records of decisions that were never stored: another decision came
	// first. A further record withdraws each of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Withdraws []StepEvidence `json:"withdraws,omitempty"`
}
