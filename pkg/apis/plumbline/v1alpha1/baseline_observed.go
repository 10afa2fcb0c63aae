// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ObservedState is the object at the last read.
type ObservedState struct {
	// uid is the UID of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// hash is its guarded hash.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// fullHash is the hash of the whole body, as the admission stamp has it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FullHash string `json:"fullHash,omitempty"`
	// generation is the generation of the object.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`
	// resourceVersion is the resourceVersion of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// writer is the writer stamp found on it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Writer string `json:"writer,omitempty"`
	// stampPolicy identifies the policy that stamps writers and that was active when the object
	// was seen. As long as it still is, every later write is stamped.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	StampPolicy string `json:"stampPolicy,omitempty"`
	// applied is the stamp of the last apply found on it. It has the resourceVersion before the
	// apply, and the means by which the apply states the desired state.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Applied string `json:"applied,omitempty"`
	// metadata is the metadata that the object gets again when it is recreated.
	// +optional
	Metadata *ObservedMetadata `json:"metadata,omitempty"`
}

// ObservedMetadata is the part of an object's metadata by which others find the object. It is no
// part of the authorized content.
type ObservedMetadata struct {
	// labels are the labels of the object.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are those alone that name the package which the object belongs to.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Annotations map[string]string `json:"annotations,omitempty"`
	// ownerReferences are the owner references of the object. With more than 16, or with one
	// beyond the bounds of its fields, the list is empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	OwnerReferences []ObservedOwner `json:"ownerReferences,omitempty"`
}

// ObservedOwner is an owner of an object, in the object's namespace or cluster-scoped.
type ObservedOwner struct {
	// apiVersion is the API version of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is the kind of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name is the name of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid is the UID of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// controller says whether the owner controls the object.
	// +optional
	Controller Toggle `json:"controller,omitempty"`
}
