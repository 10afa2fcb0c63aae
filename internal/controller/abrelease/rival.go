// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// reasonCanaryShared says that runs of another release judge the canary already.
const reasonCanaryShared = "CanaryShared"

// findRivals finds the releases that have what this one asks for: of several the one that was made first, as
// every replica has it.
func (r *Reconciler) findRivals(ctx context.Context, s *subject) error {
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.release.Namespace)); err != nil {
		return fmt.Errorf("listing releases: %w", err)
	}
	s.sharedCanary = rollout.FindSharer(s.release, all.Items)
	for i := range all.Items {
		other := &all.Items[i]
		if rollout.CompareAges(other, s.release) >= 0 {
			continue
		}
		if group := sharedGroup(other, s.release); (group != "" || divideOneService(other, s.release)) && isEarlier(other, s.rival) {
			s.rival, s.contested = other, group
		}
	}
	return nil
}

// isEarlier tells whether a release was made before another one, which may be nil.
func isEarlier(a, b *v1alpha1.ABRelease) bool { return b == nil || rollout.CompareAges(a, b) < 0 }

func divideOneService(a, b *v1alpha1.ABRelease) bool {
	return a.Spec.HasRequests() && b.Spec.HasRequests() && a.Spec.ServiceName == b.Spec.ServiceName
}

// sharedGroup names a Deployment that is a group of both releases; empty if none is.
func sharedGroup(a, b *v1alpha1.ABRelease) string {
	of := rollout.GroupsOf(a)
	if of == nil {
		return ""
	}
	for i := range b.Spec.Variations {
		group := b.Spec.Variations[i].Group
		for _, name := range of.Deployments {
			if group != nil && group.Name == name {
				return name
			}
		}
	}
	return ""
}
