// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ObservedState is what was last read.
type ObservedState struct {
	// uid of the object.
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
	// generation of the object.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`
	// resourceVersion of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// writer is the writer stamp found on it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Writer string `json:"writer,omitempty"`
	// stampPolicy identifies the policy that stamps writers and that was in force
	// when the object was seen. As long as it still is, every later write is stamped.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	StampPolicy string `json:"stampPolicy,omitempty"`
	// applied is the stamp of the last apply found on it: the resourceVersion before
	// the apply, and by which means the apply states the desired state.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Applied string `json:"applied,omitempty"`
	// metadata is what the object gets again if it has to be made again.
	// +optional
	Metadata *ObservedMetadata `json:"metadata,omitempty"`
}

// ObservedMetadata is what of an object's metadata others find it by. It is no part
// of what is authorized.
type ObservedMetadata struct {
	// labels of the object.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are those alone that name the package which the object belongs to.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Annotations map[string]string `json:"annotations,omitempty"`
	// ownerReferences of the object. Of more than 16, or of one beyond the bounds of its
	// fields, none are kept.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	OwnerReferences []ObservedOwner `json:"ownerReferences,omitempty"`
}

// ObservedOwner is an owner of an object, in the object's namespace or cluster-scoped.
type ObservedOwner struct {
	// apiVersion of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// uid of the owner.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
	// controller says whether the owner controls the object.
	// +optional
	Controller Toggle `json:"controller,omitempty"`
}
