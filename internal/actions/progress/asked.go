// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// asked returns the queries and webhooks of the run, each with its last answer.
func (g *gates) asked() (all []Gate) {
	for i := range g.in.Gates {
		all = append(all, askedGate(&g.in.Gates[i]))
	}
	if g.waits(rollout.WaitGate) {
		all = append(all, g.held("Gates", "the queries and webhooks have to pass, or a person takes them out of the spec"))
	}
	return all
}

func askedGate(in *v1alpha1.RolloutGateStatus) Gate {
	gate := Gate{Name: string(in.Kind) + " " + in.Name, State: GateHolds, Value: string(in.Result)}
	if in.Result == "Pass" {
		gate.State = GateOK
	}
	if in.Value != "" {
		gate.Value = in.Value + ": " + gate.Value
	}
	if in.Message != "" {
		gate.Value += ", " + in.Message
	}
	return gate
}

// anywhere is an installation that permits each gate of a release: the plugin does not know the flags of
// the discovery server, which refuses in the status.
func anywhere(r *v1alpha1.ABRelease) rollout.Installation {
	has := rollout.Installation{Prometheus: true, InlineQueries: true}
	if in := r.Spec.Rollout.Gates; in != nil {
		for i := range in.Webhooks {
			has.GateSecrets = append(has.GateSecrets, in.Webhooks[i].Destination.Name, in.Webhooks[i].SigningKey.Name)
		}
	}
	return has
}
