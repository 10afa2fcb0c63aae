// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"github.com/plumbline-dev/plumbline/internal/guards"
)

// collectEdits is the least time between a snapshot and the next that changes of guards
// alone cause. The objects of a changed guard are judged anew, so a tenant who edits
// guards in a loop, or removes and makes them, would otherwise keep the assessor busy.
const collectEdits = 500 * time.Millisecond

// postpone returns how long the changes of an input are collected; zero when the input
// counts at once.
func (c *Controller) postpone(in *guards.Input) time.Duration {
	age := c.Clock.Since(c.changedAt)
	if age < 0 || age >= collectEdits || guards.ConcernsNamespaces(c.current.Load(), in) {
		return 0
	}
	return collectEdits - age
}
