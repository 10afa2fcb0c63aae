// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Selection remembers by which labels guards select an object. A label that an untrusted writer
// takes off does not release the object; a guard that no longer selects these labels releases
// the object.
type Selection struct {
	// labels are the labels of the object, as they were when a guard first selected it, moved
	// since by the writes of trusted writers alone.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	Labels map[string]string `json:"labels,omitempty"`
	// guards are the guards that select the object. A recreated guard is another guard.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=128
	Guards []SelectingGuard `json:"guards,omitempty"`
}

// SelectingGuard is a guard that selects an object.
type SelectingGuard struct {
	// uid is the UID of the guard.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// labels are the labels by which this guard selected the object, where its selector does
	// not match the labels of the selection. Of very many, they are those that the selector
	// names. Empty is not absent: a selector may ask for the absence of a label.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Labels map[string]string `json:"labels,omitzero"`
}
