// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Group is a variation whose replicas runs divide. A number that is not known is nil.
type Group struct {
	Name v1alpha1.VariationName `json:"name"`
	// IsCanary says whether the run under way tries the variation.
	IsCanary bool `json:"isCanary,omitempty"`
	// Deployment by name.
	Deployment string `json:"deployment"`
	// Wanted are the replicas that the stage gives the group, and Replicas those that the Deployment asks for.
	Wanted   *int32 `json:"wanted,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	Ready    *int32 `json:"ready,omitempty"`
	// Restarted are the pods that have restarted since the percentage of the stage was decided.
	Restarted *int32 `json:"restarted,omitempty"`
}

// groupsOf returns the groups of a release, the active one first; none of a release that divides requests alone.
func groupsOf(r *v1alpha1.ABRelease) []Group {
	if !r.Spec.HasGroups() {
		return nil
	}
	all := make([]Group, 0, len(r.Spec.Variations))
	for _, v := range variationsOf(r) {
		g := Group{Name: v.Name, IsCanary: v.IsCanary}
		if of := r.Spec.GroupOf(v.Name); of != nil {
			g.Deployment = of.Name
		}
		if seen := seenGroup(r, v.Name); seen != nil {
			g.Wanted, g.Replicas, g.Ready, g.Restarted = seen.Wanted, seen.Replicas, seen.Ready, seen.RestartedPods
		}
		all = append(all, g)
	}
	return all
}

// seenGroup is what the status has of a group; nil if nothing.
func seenGroup(r *v1alpha1.ABRelease, name v1alpha1.VariationName) *v1alpha1.RolloutGroup {
	if r.Status.Rollout == nil {
		return nil
	}
	for i := range r.Status.Rollout.Groups {
		if g := &r.Status.Rollout.Groups[i]; g.Variation == name {
			return g
		}
	}
	return nil
}

// divided names for people what a run divides.
func divided(run *v1alpha1.RolloutRun) string {
	switch {
	case run.Division == nil:
		return "requests"
	case run.Division.Model == v1alpha1.RolloutModelHybrid:
		return "requests and replicas"
	}
	return "replicas"
}

// hasRequests tells whether a run divides requests, beside replicas or alone.
func hasRequests(run *v1alpha1.RolloutRun) bool {
	return run.Division == nil || run.Division.Model == v1alpha1.RolloutModelHybrid
}

// group compares the groups with what the stage gives them.
func (g *gates) group() Gate {
	const name = "Groups"
	switch {
	case g.waits(rollout.WaitGroupScaled):
		return g.held(name, "scale the Deployment back, or ask for Rollback")
	case !hasRequests(g.run) && g.waits(rollout.WaitDeployment, rollout.WaitCapacity, rollout.WaitFallback):
		return g.held(name, "the pods have to become ready")
	}
	seen := seenGroup(g.Release, g.run.To.Variation)
	if seen == nil || seen.Ready == nil || seen.Replicas == nil {
		return Gate{name, GateUnknown, "the status has no replicas of " + string(g.run.To.Variation), ""}
	}
	value := fmt.Sprintf("%s: %d of %d ready", seen.Variation, *seen.Ready, *seen.Replicas)
	if *seen.Ready < *seen.Replicas {
		return Gate{name, GateHolds, value, "the pods have to become ready"}
	}
	return Gate{name, GateOK, value, ""}
}

// groupVerdict says whether the canary does well: its pods are ready and restart nothing.
func (g *gates) groupVerdict() Gate {
	name := "Verdict"
	if hasRequests(g.run) { // the verdict is of both
		name = "Restarts"
	}
	switch {
	case g.stage.State == "Failed":
		return Gate{name, GateHolds, "the stage failed: " + g.stage.Message, "ask for Retry, Skip or Rollback"}
	case g.stage.PassTime != nil:
		return Gate{name, GateOK, "the stage passed: " + g.stage.Message, ""}
	case !hasRequests(g.run) && g.waits(rollout.WaitData, rollout.WaitDecision, rollout.WaitUndecided):
		return g.held(name, "the pods of the canary have to be ready")
	}
	restarted := int32(0)
	if seen := seenGroup(g.Release, g.run.To.Variation); seen != nil {
		restarted = *cmp.Or(seen.RestartedPods, new(int32(0)))
	}
	return Gate{name, GateOK, fmt.Sprintf("%d pods of the canary have restarted", restarted), "a restart fails the stage, as do too few ready pods for 15 seconds"}
}
