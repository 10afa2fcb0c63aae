// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PlaceAspect is the changing property of a place.
// +kubebuilder:validation:Enum=Value;Order
type PlaceAspect string

// The aspects of a place.
const (
	// AspectValue: the value at the path, or anything inside of it.
	AspectValue PlaceAspect = "Value"
	// AspectOrder: the order of the list at the path alone.
	AspectOrder PlaceAspect = "Order"
)

// Place is where an object changes to and fro.
type Place struct {
	// path is the path of the place, as in findings; absent for the object as a whole, which
	// comes and goes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// aspect is the aspect of the place that changes.
	// +required
	Aspect PlaceAspect `json:"aspect,omitempty"`
}

// ReversalPlace is one place of a reversal, and its writer.
type ReversalPlace struct {
	// path is the path of the place, as in findings; absent for the object as a whole, which was
	// deleted or created.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// aspect is the aspect of the place that changed.
	// +required
	Aspect PlaceAspect `json:"aspect,omitempty"`
	// by names the writer; absent for an expected writer, because a rule allows its change, and
	// for an unknown writer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`
	// class is the class of that writer under the active guards.
	// +optional
	Class ActorClass `json:"class,omitempty"`
}

// Reversal is one write that reverts another writer. It made the object drift, remediated it, or
// took a path back to its value before the other writer changed it.
type Reversal struct {
	// observedTime is when it was seen.
	// +required
	ObservedTime metav1.Time `json:"observedTime,omitempty,omitzero"`
	// places are the places at which the write did so, the worst findings first; no more are
	// remembered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Places []ReversalPlace `json:"places,omitempty"`
}

// Contention is a fight between two writers.
type Contention struct {
	// startTime is when it was recognized.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
	// with names the writers that keep changing the object, least trusted first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	With []string `json:"with,omitempty"`
	// places are the places that they fight over.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Places []Place `json:"places,omitempty"`
}
