// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
)

// FindHolder names the release, and its run, that is under way and has a workload as a variation, or holds the
// minimum of an autoscaler; empty if none is. A change of the workload would void what the run measures, or meet a work of the
// executor. A run is under way until it has ended and the executor has done all that it was asked for.
func FindHolder(releases []v1alpha1.ABRelease, namespace, kind, name string) string {
	for i := range releases {
		r := &releases[i]
		if r.Namespace != namespace || !isUnderWay(r) || !hasWorkload(r, kind, name) && !holdsMinimum(r, kind, name) {
			continue
		}
		return fmt.Sprintf("run %d of ABRelease %s", r.Status.Rollout.Run.Number, r.Name)
	}
	return ""
}

func hasWorkload(r *v1alpha1.ABRelease, kind, name string) bool {
	if r.Status.Rollout.Run.FreshControl != nil && kind == string(v1alpha1.VariationDeployment) && name == v1alpha1.CloneName(r.Name, v1alpha1.FreshControl) {
		return true
	}
	return slices.ContainsFunc(r.Spec.Variations, func(v v1alpha1.Variation) bool {
		w := clone.WorkloadOf(r, v.Name)
		isGroup := v.Group != nil && string(v.Group.Kind) == kind && v.Group.Name == name
		return isGroup || w != nil && string(w.Kind) == kind && w.Name == name
	})
}

// holdsMinimum tells whether a release holds the minimum of an autoscaler.
func holdsMinimum(r *v1alpha1.ABRelease, kind, name string) bool {
	hold := StateOf(&r.Status).Hold
	return kind == "HorizontalPodAutoscaler" && hold != nil && hold.Autoscaler != nil && hold.Autoscaler.Name == name
}

// isUnderWay reads the status alone, so a spec that no longer has a rollout ends no run.
func isUnderWay(r *v1alpha1.ABRelease) bool {
	state := StateOf(&r.Status)
	return state.Run != nil && (state.IsOn() || state.HasOpenWork() || state.OwesGroups())
}
