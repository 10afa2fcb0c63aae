// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// required is how many ready endpoints a variation needs for a weight: the part of what the active one
// had at its most, rounded up.
func (r *Run) required(weight traffic.Weight) int {
	return max(1, (int(weight)*r.Capacity+int(traffic.Total)-1)/int(traffic.Total))
}

// fallbackTolerance is the part of its endpoints, in percent, that the active variation can lose before
// the ramp holds.
const fallbackTolerance = 20

// hasCapacity tells whether the canary can take a weight, and whether the active variation could take
// everything back; it waits otherwise.
func (m *machine) hasCapacity(weight traffic.Weight) bool {
	run := m.next.Run
	canary, is := m.arm(run.Canary)
	if wants := run.required(weight); !is || canary.Ready < wants {
		m.waitTold(WaitCapacity, m.deadlines().Deployment, "%s: %d ready, wants %d for %s%%", run.Canary, canary.Ready, wants, percent(weight))
		return false
	}
	active, is := m.arm(run.Active)
	if !is || active.Ready*100 < run.Capacity*(100-fallbackTolerance) {
		m.waitTold(WaitFallback, m.deadlines().Deployment, "%s: %d of %d are ready, too few to take all requests back", run.Active, active.Ready, run.Capacity)
		return false
	}
	return true
}
