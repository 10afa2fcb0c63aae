// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// ineffective holds a drift back whose repairs did not help. The request of a person passes no chain:
// a person forgives the chain, or changes the policy.
func ineffective(in *Input, d *Drift) Obstacle {
	if d.Chain.Rule == effect.ChainNone {
		return Obstacle{}
	}
	o := obstacle(ReasonChain, "%s: a person has to look; after a change of policy %s, or \"kubectl plumbline assess forgive %s\", it can be remediated again",
		describeChain(&d.Chain), in.Policy.Name, in.Policy.Name)
	o.Until = d.Chain.Until
	return o
}

// describeChain says why repairs are a chain. The words stay the same while the chain does, because
// an escalation is told once for its words.
func describeChain(c *effect.Chain) string {
	last := ""
	if n := len(c.Repairs); n > 0 {
		last = ", the last one by plan " + c.Repairs[n-1].Plan
	}
	switch c.Rule {
	case effect.ChainRegressions:
		return fmt.Sprintf("it is again as before each of the last %d repairs%s", effect.Regressions, last)
	case effect.ChainForward:
		return fmt.Sprintf("%d repairs within an hour built upon each other, without help%s", effect.ForwardRepairs, last)
	case effect.ChainTooMany:
		return fmt.Sprintf("it was repaired %d times within four hours%s", effect.MostInWindow, last)
	case effect.ChainUnknown, effect.ChainNone:
	}
	return "no verdict on the earlier repairs of it can be read" + last
}
