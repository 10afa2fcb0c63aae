// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// findRival finds the release that divides the Service already: of several the one
// that was made first, as every replica has it.
func (r *Reconciler) findRival(ctx context.Context, s *subject) error {
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.release.Namespace)); err != nil {
		return fmt.Errorf("listing releases: %w", err)
	}
	first := s.release
	for i := range all.Items {
		if other := &all.Items[i]; other.Spec.HasRequests() && other.Spec.ServiceName == s.release.Spec.ServiceName && before(other, first) {
			first = other
		}
	}
	if first.UID != s.release.UID {
		s.rival = first
	}
	return nil
}

// before is the order of package ir.
func before(a, b *v1alpha1.ABRelease) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
