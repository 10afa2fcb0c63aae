// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OversizedBody is an authorized state with a body that is too large for a BaselineRevision. Its
// hash alone is kept.
type OversizedBody struct {
	// hash is the guarded hash of the body.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Hash string `json:"hash,omitempty"`
	// size is the size of the encoded body, in bytes. A BaselineRevision holds 786432.
	// +required
	// +kubebuilder:validation:Minimum=1
	Size int64 `json:"size,omitempty"`
	// by is the user that authorized it by a write or an acceptance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	By string `json:"by,omitempty"`
	// origin says how the object came under guard.
	// +required
	Origin Origin `json:"origin,omitempty"`
}
