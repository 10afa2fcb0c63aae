// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
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
	var sharer *v1alpha1.ABRelease
	for i := range all.Items {
		other := &all.Items[i]
		if compareAges(other, s.release) >= 0 {
			continue
		}
		if group := sharedGroup(other, s.release); (group != "" || divideOneService(other, s.release)) && isEarlier(other, s.rival) {
			s.rival, s.contested = other, group
		}
		if canary := sharedCanary(other, s.release); canary != nil && isEarlier(other, sharer) {
			sharer = other
			s.sharedCanary = fmt.Errorf("ABRelease %s rolls out to %s %s already: no run begins until one of the two releases names another canary or is deleted", other.Name, canary.Kind, canary.Name)
		}
	}
	return nil
}

// isEarlier tells whether a release was made before another one, which may be nil.
func isEarlier(a, b *v1alpha1.ABRelease) bool { return b == nil || compareAges(a, b) < 0 }

// compareAges is the order of package ir.
func compareAges(a, b *v1alpha1.ABRelease) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

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

// sharedCanary returns a workload that both releases roll out to; nil if there is none. Each release would begin
// a run of each revision, and one of them would go on with what the other one has rolled back.
func sharedCanary(a, b *v1alpha1.ABRelease) *v1alpha1.VariationWorkload {
	of := canariesOf(a)
	for _, canary := range canariesOf(b) {
		if slices.Contains(of, canary) {
			return &canary
		}
	}
	return nil
}

// canariesOf lists the workloads of the variations beside the stable one; none without a rollout.
func canariesOf(r *v1alpha1.ABRelease) (all []v1alpha1.VariationWorkload) {
	if r.Spec.Rollout == nil {
		return nil
	}
	for i := range r.Spec.Variations {
		v := &r.Spec.Variations[i]
		if v.Name == r.Spec.Stable {
			continue
		}
		if w := clone.WorkloadOf(r, v.Name); w != nil {
			all = append(all, *w)
		}
		if v.Workload != nil && v.Group != nil {
			all = append(all, v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: v.Group.Name})
		}
	}
	return all
}
