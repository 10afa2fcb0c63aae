// SPDX-License-Identifier: Apache-2.0

package work

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// MaxKept works of a release are kept at least: three times as many as the status of the release names.
const MaxKept = 24

// Removable returns the works of a release that it has no more use for, the oldest first: all that have ended
// but the [MaxKept] newest. What the status of the release names is kept, since the discovery server asks
// again for a work that it does not find, and so is the work that says which minimum is held.
func Removable(release *v1alpha1.ABRelease, works []v1alpha1.ReleaseWork) []*v1alpha1.ReleaseWork {
	var own []*v1alpha1.ReleaseWork
	for i := range works {
		if works[i].Spec.ReleaseUID == string(release.UID) {
			own = append(own, &works[i])
		}
	}
	slices.SortFunc(own, func(a, b *v1alpha1.ReleaseWork) int {
		switch {
		case IsBefore(a, b):
			return -1
		case IsBefore(b, a):
			return 1
		}
		return 0
	})
	old := own[:max(0, len(own)-MaxKept)]
	holder := holderIn(own)
	return slices.DeleteFunc(slices.Clone(old), func(w *v1alpha1.ReleaseWork) bool {
		return w == holder || !hasEnded(w) || isNamed(release, w)
	})
}

// hasEnded says whether a work is known to have ended. A phase that this version does not know says nothing.
func hasEnded(w *v1alpha1.ReleaseWork) bool {
	switch w.Status.Phase {
	case v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkFailed:
		return true
	case v1alpha1.WorkPending, v1alpha1.WorkRunning, "":
		return false
	}
	return false
}

func isNamed(release *v1alpha1.ABRelease, w *v1alpha1.ReleaseWork) bool {
	in := release.Status.Rollout
	return in != nil && slices.ContainsFunc(in.Works, func(named v1alpha1.RolloutWork) bool {
		return named.Run == w.Spec.Run && named.Number == w.Spec.Number
	})
}
