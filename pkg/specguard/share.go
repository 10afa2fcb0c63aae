// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"reflect"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Share returns the state with parts of a stored Baseline in the place of equal parts of its own, so
// that memory holds them once. Neither Step nor Share changes the Baseline, and no caller may.
func (s State) Share(b *v1alpha1.Baseline) State {
	if s.Name == b.Name && s.Target == b.Spec.Target {
		s.Name, s.Target = b.Name, b.Spec.Target
	}
	s.Authorized = shareEqual(s.Authorized, b.Spec.Authorized)
	s.Selection = shareEqual(s.Selection, b.Status.Selection)
	s.Oversized = shareEqual(s.Oversized, b.Status.Oversized)
	s.Contention = shareEqual(s.Contention, b.Status.Contention)
	if s.Drift == b.Status.State {
		s.Drift = b.Status.State
	}
	observed := b.Status.Observed
	observed.ResourceVersion = s.Observed.ResourceVersion // moves alone, and is not written then
	if reflect.DeepEqual(s.Observed, observed) {
		s.Observed = observed
	}
	return s
}

func shareEqual[T any](own, stored *T) *T {
	if reflect.DeepEqual(own, stored) {
		return stored
	}
	return own
}
