// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelStandby is on the Deployment that stands in for a target while the target is repaired,
// and on its pods. It is also on the ABRelease that moves the requests. Its value is the uid of
// the plan, the index of the step and the number of the standby, with dots between.
const LabelStandby = "plumbline.dev/standby"

// The variations of the ABRelease of a standby.
const (
	// VariationTarget is the Deployment that is repaired.
	VariationTarget VariationName = "target"
	// VariationStandby is the Deployment that stands in for it.
	VariationStandby VariationName = "standby"
)

// StandbyTemplate says how the pods of a standby differ from those of the target.
type StandbyTemplate struct {
	// podLabels are labels that the pods of the standby have in place of those of the target.
	// They must take the pods out of the selectors of the Service and of the target. So at
	// least one key of each selector has another value.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(k) <= 317)",message="a label key has 1 to 317 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('plumbline.dev/'))",message="labels of plumbline.dev are set by the executor alone: use another key"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`
}

// StandbyPhase is how far the standby of a step is.
// +kubebuilder:validation:Enum=Preparing;Switching;Serving;Returning;Draining;Removing;Removed
// +kubebuilder:validation:MaxLength=16
type StandbyPhase string

// The phases of a standby.
const (
	// StandbyPreparing has the ABRelease and the Deployment made, and the pods become ready.
	StandbyPreparing StandbyPhase = "Preparing"
	// StandbySwitching moves the requests to the standby, until all proxies have acknowledged that.
	StandbySwitching StandbyPhase = "Switching"
	// StandbyServing has the standby answer all requests while the target is repaired.
	StandbyServing StandbyPhase = "Serving"
	// StandbyReturning moves the requests back to the target, until all proxies have acknowledged that.
	StandbyReturning StandbyPhase = "Returning"
	// StandbyDraining waits for the answers of the standby to requests that are under way.
	StandbyDraining StandbyPhase = "Draining"
	// StandbyRemoving has the ABRelease deleted, and the Deployment with it.
	StandbyRemoving StandbyPhase = "Removing"
	// StandbyRemoved has no objects left.
	StandbyRemoved StandbyPhase = "Removed"
)

// StepStandby is the standby of a step, and how far it is.
type StepStandby struct {
	// phase is the phase of the standby.
	// +required
	Phase StandbyPhase `json:"phase,omitempty"`
	// phaseTime is when the phase began.
	// +required
	PhaseTime metav1.Time `json:"phaseTime,omitempty,omitzero"`
	// number is the number of the standby within the step, from 1: a step that is deferred
	// removes its standby, and makes another one later.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Number int32 `json:"number,omitempty"`
	// name is the name of the ABRelease and of the Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// serviceName is the Service with the requests that move.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ServiceName string `json:"serviceName,omitempty"`
	// replicas are the replicas of the standby: as many as the repaired target has.
	// +required
	// +kubebuilder:validation:Minimum=1
	Replicas int32 `json:"replicas,omitempty"`
	// targetReplicas is the number of ready replicas of the target before. The requests return
	// when as many are ready again.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TargetReplicas int32 `json:"targetReplicas"`
	// startTime is when the executor intended to make the standby.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// evidence is the evidence of the Deployment that was made.
	// +optional
	Evidence *StepEvidence `json:"evidence,omitempty"`
}
