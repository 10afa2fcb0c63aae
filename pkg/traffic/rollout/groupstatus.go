// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// GroupsOf returns the groups of a release; nil if its runs divide requests alone.
func GroupsOf(r *v1alpha1.ABRelease) *Groups {
	if !r.Spec.HasGroups() {
		return nil
	}
	g := &Groups{Deployments: map[string]string{}, Routed: r.Spec.HasRequests()}
	if g.Routed {
		g.Arms = map[string]Arm{}
	}
	for i := range r.Spec.Variations {
		if v := &r.Spec.Variations[i]; v.Group != nil {
			g.Deployments[string(v.Name)] = v.Group.Name
		}
	}
	return g
}

// WriteGroups tells what is seen of the groups of a release, and what the stage under way wants.
func WriteGroups(status *v1alpha1.RolloutStatus, s State, arms map[string]Arm, variations [2]string) {
	status.Groups = nil
	for _, variation := range variations {
		arm, is := arms[variation]
		if !is {
			continue
		}
		out := v1alpha1.RolloutGroup{
			Variation: v1alpha1.VariationName(variation), Replicas: new(countOfPods(arm.Replicas)), Ready: new(countOfPods(arm.Ready)),
		}
		if s.Current() > 0 && variation == s.Run.Canary {
			out.RestartedPods = new(countOfPods(arm.Restarted))
		}
		if d := s.division(); d != nil && d.Total > 0 && s.IsOn() {
			active, canary := d.sizes(s.Weight())
			if out.Wanted = new(countOfPods(active)); variation == s.Run.Canary {
				out.Wanted = new(countOfPods(canary))
			}
		}
		status.Groups = append(status.Groups, out)
	}
}

func (s State) division() *Division {
	if s.Run == nil {
		return nil
	}
	return s.Run.Division
}

// countOfPods bounds a number that a Deployment reports.
func countOfPods(n int) int32 { return int32(min(max(n, 0), 2*maxReplicas)) } //nolint:gosec // bounded

func (r *Run) writeDivision() *v1alpha1.RolloutDivision {
	d := r.Division
	if d == nil {
		return nil
	}
	out := &v1alpha1.RolloutDivision{
		Replicas: new(countOfPods(d.Total)), Active: new(countOfPods(d.Active)), Canary: new(countOfPods(d.Canary)),
		ShortTime: timeOrNil(d.ShortSince), SettlementTime: timeOrNil(d.SettleTime),
	}
	if d.Routed {
		out.Model = v1alpha1.RolloutModelHybrid
	}
	return out
}

func divisionIn(in *v1alpha1.RolloutDivision) *Division {
	if in == nil || in.Replicas == nil || in.Active == nil || in.Canary == nil {
		return nil
	}
	return &Division{
		Total: int(*in.Replicas), Active: int(*in.Active), Canary: int(*in.Canary), Routed: in.Model == v1alpha1.RolloutModelHybrid,
		ShortSince: timeOf(in.ShortTime), SettleTime: timeOf(in.SettlementTime),
	}
}
