// SPDX-License-Identifier: Apache-2.0

package resync

import "time"

// Bounds of the wait after a check that failed, before the jitter of up to a
// fifth.
const (
	MinBackoff = 30 * time.Second
	MaxBackoff = 15 * time.Minute
)

// Backoff is how long to wait after a check that failed for the failures-th time
// in a row: MinBackoff, doubled with each further failure up to MaxBackoff, but no
// longer than the period unless that is shorter than MinBackoff; and a jitter of
// up to a fifth, by uid and time as for periods, because what makes one check fail
// makes many fail. It never ends: a check that fails for ever is tried for ever.
// Without a failure it is 0.
func Backoff(uid string, failures int, at time.Time, period time.Duration) time.Duration {
	if failures <= 0 {
		return 0
	}
	wait := MinBackoff
	for n := 1; n < failures && wait < MaxBackoff; n++ {
		wait *= 2
	}
	wait = min(wait, MaxBackoff)
	if period > 0 && period < wait {
		wait = max(period, MinBackoff)
	}
	return wait + jitter(uid, at, wait)
}
