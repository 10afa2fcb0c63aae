// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"fmt"
	"time"
)

// MinPeriod keeps the rounds of one field further apart than the window of the
// fight detector, ten minutes.
const MinPeriod = 4 * time.Minute

// knob is a number of the Deployment's spec that changes nothing that runs, nor
// makes a new ReplicaSet.
type knob struct {
	name string
	// rest is the API server's default, which the chart leaves alone so that no
	// upgrade has a conflict about it; drift is the value that must be found.
	rest, drift int64
}

// knobs are taken in turn.
var knobs = [...]knob{
	{name: "minReadySeconds", rest: 0, drift: 1},
	{name: "progressDeadlineSeconds", rest: 600, drift: 601},
	{name: "revisionHistoryLimit", rest: 10, drift: 11},
}

func (f knob) path() string { return "/spec/" + f.name }

// patch is a merge patch that sets the knob.
func (f knob) patch(value int64) []byte {
	return fmt.Appendf(nil, `{"spec":{%q:%d}}`, f.name, value)
}

// Slot is one round's place in time.
type Slot struct {
	// Begin of the slot.
	Begin time.Time
	knob  knob
}

// SlotAt returns the slot that begins at or after a time. Slots are counted from
// 1970, so every run of the self-test agrees about them.
func SlotAt(now time.Time, period time.Duration) Slot {
	n := now.UnixNano() / int64(period)
	if n*int64(period) != now.UnixNano() {
		n++
	}
	return Slot{Begin: time.Unix(0, n*int64(period)).UTC(), knob: knobs[n%int64(len(knobs))]}
}
