// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MassDrift lists the drift that a guard leaves to people, because so much drifts at
// once that one cause must be assumed.
type MassDrift struct {
	// everythingStartTime is the time from which all objects of the guard are frozen, because
	// the lists do not hold all namespaces and causes. It is absent while they do.
	// +optional
	EverythingStartTime *metav1.Time `json:"everythingStartTime,omitempty"`
	// namespaces are the namespaces in which much drifts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Namespaces []FrozenNamespace `json:"namespaces,omitempty"`
	// causes are the causes by which much drifts in several namespaces; drift with such a cause
	// is frozen in each of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Causes []FrozenCause `json:"causes,omitempty"`
}

// FrozenNamespace is a namespace in which much drifts at once.
type FrozenNamespace struct {
	// name is the name of the namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// startTime is the beginning of the freeze.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
}

// FrozenCause is the path and the user that much drift in several namespaces has in
// common.
type FrozenCause struct {
	// path is the path that was changed, with "*" for the keys of list elements; absent for
	// objects as a whole.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
	// user is the user that changed it; absent without a proof of the writer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	User string `json:"user,omitempty"`
	// startTime is the beginning of the freeze.
	// +required
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`
}
