// SPDX-License-Identifier: Apache-2.0

package difference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// AuthorizedState is the authorized state of an object, with the user who authorized it.
type AuthorizedState struct {
	Revision int64           `json:"revision"`
	By       string          `json:"by,omitempty"`
	At       metav1.Time     `json:"at,omitzero"`
	Origin   v1alpha1.Origin `json:"origin,omitempty"`
	Hash     string          `json:"hash"`
	// Release names the run that authorized it in the name of By; nil if none did.
	Release *v1alpha1.AuthorizedRelease `json:"release,omitempty"`
}

// ReportAuthorized returns the authorized state of a Baseline; nil where there is none.
func ReportAuthorized(b *v1alpha1.Baseline) *AuthorizedState {
	authorized := b.Spec.Authorized
	if authorized == nil {
		return nil
	}
	return &AuthorizedState{
		Revision: authorized.Number, By: authorized.By, At: authorized.AuthorizationTime,
		Origin: authorized.Origin, Hash: authorized.Hash, Release: authorized.Release,
	}
}
