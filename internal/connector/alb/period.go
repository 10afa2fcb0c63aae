// SPDX-License-Identifier: Apache-2.0

package alb

import "time"

const (
	// longestGap is the longest time between two looks at one period. After a longer one another writer may have changed
	// the weights, and put them back.
	longestGap = 2 * time.Minute
	// maxPeriods bounds the periods that are kept.
	maxPeriods = 64
)

// period is a time in which a sequence was in force, until the last look.
type period struct {
	sequence  uint64
	from, end time.Time
}

// extendPeriods adds a look at a sequence that is in force since a time.
func extendPeriods(periods []period, sequence uint64, since, now time.Time) []period {
	if last := len(periods) - 1; last >= 0 && periods[last].sequence == sequence && periods[last].from.Equal(since) {
		periods[last].end = now
		return periods
	}
	periods = append(periods, period{sequence, since, now})
	return periods[max(0, len(periods)-maxPeriods):]
}

// findSequence returns the sequence that was in force during all of a time; 0 if none is known.
func findSequence(periods []period, from, end time.Time) uint64 {
	for _, p := range periods {
		if !p.from.After(from) && !p.end.Before(end) {
			return p.sequence
		}
	}
	return 0
}
