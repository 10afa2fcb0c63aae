// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// WithControl returns the release as works about its fresh control see it: the control is a clone that changes
// nothing, and the stable variation is the one that is active in the run. For another variation it returns the
// release itself. A release that asks for no fresh control gets none, so a work about it has no body.
func WithControl(release *v1alpha1.ABRelease, variation v1alpha1.VariationName) *v1alpha1.ABRelease {
	if release == nil || variation != v1alpha1.FreshControl {
		return release
	}
	seen := release.DeepCopy()
	if in := release.Status.Rollout; in != nil && in.Run != nil {
		seen.Spec.Stable = in.Run.From.Variation
	}
	if release.Spec.HasFreshControl() {
		seen.Spec.Variations = append(seen.Spec.Variations, v1alpha1.Variation{
			Name: v1alpha1.FreshControl, Clone: &v1alpha1.VariationClone{PodLabels: release.Spec.Rollout.Analysis.ControlPodLabels},
		})
	}
	return seen
}

// isUnchanged says whether a clone has the images and variables of what it is made from, as a fresh control has.
func isUnchanged(c *v1alpha1.VariationClone) bool {
	return c.Image == "" && len(c.Env) == 0 && len(c.Containers) == 0
}

// ownLabel returns the value of [v1alpha1.LabelClone] of a variation's clone. The clones of one release have
// different values, since each value is a selector.
func ownLabel(uid types.UID, variation v1alpha1.VariationName) string {
	if variation == v1alpha1.FreshControl {
		return string(uid) + "." + string(v1alpha1.FreshControl)
	}
	return string(uid)
}

// podLabelsField returns the path of the field with the labels of a clone's pods.
func podLabelsField(variation v1alpha1.VariationName) string {
	if variation == v1alpha1.FreshControl {
		return "spec.rollout.analysis.controlPodLabels"
	}
	return fieldOf(string(variation), "clone.podLabels")
}
