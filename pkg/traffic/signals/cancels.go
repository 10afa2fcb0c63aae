// SPDX-License-Identifier: Apache-2.0

package signals

import "slices"

// agreed is how many flushes in a row have to reach a level before it counts.
const agreed = 3

// cancels finds the requests of one slot at one proxy that were given up. Those that
// have begun, have no status and are not in flight were; but of those in flight some
// may have a status, as a WebSocket has as long as it is open. So the difference is too
// low while there are such, and its highest value so far is the number given up for
// certain. It is never too high, but late.
type cancels struct {
	// levels are the requests that have begun less those that have a status or are in flight, by the last flushes, newest
	// first; told is the number that was counted.
	levels [agreed]int64
	told   int64
	// active is how many were in flight.
	active uint64
}

// begin anew, with a number of requests in flight without other facts. Each
// of them may have a status.
func (c *cancels) begin(active uint64) {
	from := -int64(active) //nolint:gosec // bounded when it is read
	*c = cancels{active: active}
	for i := range c.levels {
		c.levels[i] = from
	}
}

// flush counts those that are new.
//
// A proxy reads its counters one after the other, and then the requests in flight. A request that ends meanwhile has no
// status, and is not in flight: the level is too high by all that end until the proxy has read everything, which are
// many if the proxy waits for a processor. The next flush tells of these. So the level of the flush before is certain
// less all that have got a status since then. In traffic that does not pause, that is too low for ever; there a level
// counts when each of some flushes has reached it. It is too high only if the proxy had to wait in each of these.
func (c *cancels) flush(counts *Counts, active uint64) {
	before := c.levels[0]
	copy(c.levels[1:], c.levels[:])
	c.levels[0] = before + counts.unanswered() - int64(active) + int64(c.active) //nolint:gosec // bounded when it is read
	c.active = active
	ended := int64(counts[Completed] + counts[Retried]) //nolint:gosec // bounded when it is read
	if certain := max(before-ended, slices.Min(c.levels[:])); certain > c.told {
		counts[Canceled] = uint64(certain - c.told) //nolint:gosec // above zero
		c.told = certain
	}
}
