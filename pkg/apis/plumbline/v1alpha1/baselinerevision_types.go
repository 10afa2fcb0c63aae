// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BodyEncoding says how a body is stored.
// +kubebuilder:validation:Enum=Zstd
type BodyEncoding string

// BodyEncodingZstd is Zstandard over the canonical JSON body.
const BodyEncodingZstd BodyEncoding = "Zstd"

// MaxBodyBytes is the largest encoded body that a BaselineRevision holds, in bytes:
// as many as the bound of spec.body leaves after base64.
const MaxBodyBytes = 1048576 / 4 * 3

// MaxFieldManagersBytes is the largest encoded list of field managers that a BaselineRevision
// holds, in bytes. It is as many as the bound of spec.fieldManagers leaves after base64.
const MaxFieldManagersBytes = 65536 / 4 * 3

// BaselineRevisionSpec is one authorized body.
type BaselineRevisionSpec struct {
	// baselineName names the Baseline, in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BaselineName string `json:"baselineName,omitempty"`
	// number counts the authorized states of the object, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	Number int64 `json:"number,omitempty"`
	// hash is the guarded hash of the body.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// by is the user that authorized it by a write or an acceptance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`
	// authorizationTime is when it was authorized.
	// +required
	AuthorizationTime metav1.Time `json:"authorizationTime,omitempty,omitzero"`
	// encoding is the encoding of body.
	// +required
	Encoding BodyEncoding `json:"encoding,omitempty"`
	// body is the canonical JSON body, encoded; the bound counts base64 characters and keeps
	// the object within the limit of etcd.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	Body []byte `json:"body,omitempty"`
	// fieldManagers are the managedFields of the object when the body was authorized: a JSON
	// array, encoded as the body is. The executor gives the fields of a repair back to these
	// field managers. They are absent where the object differed from the body, or the array is
	// too large.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	FieldManagers []byte `json:"fieldManagers,omitempty"`
	// release names the run that authorized it in the name of by. If unset, no run did.
	// +optional
	Release *AuthorizedRelease `json:"release,omitempty"`
	// size is the size of the body before encoding, in bytes.
	// +required
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=8388608
	Size int64 `json:"size,omitempty"`
}

// BaselineRevision is one authorized body of a guarded object; immutable.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=plumbline
// +kubebuilder:printcolumn:name="Baseline",type=string,JSONPath=`.spec.baselineName`
// +kubebuilder:printcolumn:name="Number",type=integer,JSONPath=`.spec.number`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Hash",type=string,JSONPath=`.spec.hash`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BaselineRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the authorized body; immutable. It is required, because a rule
	// about the old and the new value is not evaluated when null removes it.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a BaselineRevision is immutable"
	Spec BaselineRevisionSpec `json:"spec,omitzero"`
}

// BaselineRevisionList is a list of BaselineRevisions.
// +kubebuilder:object:root=true
type BaselineRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BaselineRevision `json:"items"`
}
