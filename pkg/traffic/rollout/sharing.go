// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// CompareAges orders releases of one namespace by age, and by name where they are of one age. The order is that of
// package ir.
func CompareAges(a, b *v1alpha1.ABRelease) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// FindSharer finds the release that rolls out to a canary of a release and was made first, if it was made before that
// release. Runs of both would judge the canary. The error names the finding; nil without one. others are the releases
// of the namespace. A release that is not stored yet is the youngest one.
func FindSharer(r *v1alpha1.ABRelease, others []v1alpha1.ABRelease) error {
	var sharer *v1alpha1.ABRelease
	var shared *v1alpha1.VariationWorkload
	for i := range others {
		other := &others[i]
		isElder := other.Name != r.Name && (r.UID == "" || CompareAges(other, r) < 0)
		if canary := SharedCanary(other, r); isElder && canary != nil && (sharer == nil || CompareAges(other, sharer) < 0) {
			sharer, shared = other, canary
		}
	}
	if sharer == nil {
		return nil
	}
	return fmt.Errorf("ABRelease %s rolls out to %s %s already: no run begins until one of the two releases names another canary or is deleted", sharer.Name, shared.Kind, shared.Name)
}

// SharedCanary returns a workload that both releases roll out to; nil if there is none. Each release would begin
// a run of each revision, and one of them would go on with what the other one has rolled back.
func SharedCanary(a, b *v1alpha1.ABRelease) *v1alpha1.VariationWorkload {
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
