// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// control says with what the canary is compared. A run without a fresh control compares it with the active variation,
// and needs nothing for that.
func (g *gates) control() []Gate {
	const name = "Control"
	in := g.run.FreshControl
	switch {
	case in == nil:
		return nil
	case in.CompletionTime != nil:
		return []Gate{{name, GateOK, fmt.Sprintf("the canary is compared with %s itself: %s", g.run.From.Variation, in.Message), ""}}
	case g.waits(rollout.WaitControl):
		return []Gate{g.held(name, "the pods of the fresh control have to become ready, and warm")}
	}
	for i := range g.Release.Status.Observed {
		if o := &g.Release.Status.Observed[i]; o.Variation == v1alpha1.FreshControl {
			return []Gate{{name, GateOK, fmt.Sprintf("%s: %d of %d ready, and the percentage needs %d", o.Variation, o.ReadyEndpoints, o.Targets, in.RequiredReady), ""}}
		}
	}
	return []Gate{{name, GateUnknown, "the status has no endpoints of " + string(v1alpha1.FreshControl), ""}}
}
