// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// What is gross. Shares are not compared: visitors who stay where they are make any
// bound on them either blind or loud.
const (
	// Settles is how long after the acknowledgment requests may still end that were sent
	// by the former split.
	Settles = 30 * time.Second
	// strays is how many requests where none may be are none: of clients that an
	// upgrade held for long, or of a proxy that left while it counted.
	strays = 10
	// enough is how many requests a variation would have to have when each is drawn by
	// itself: none of 50 expected ones has odds of 1 to 5·10²¹.
	enough = 50
	// enoughOfVisitors is that where a visitor stays: a hundred visitors with a hundred
	// requests each could all be elsewhere once in 10⁴³ times; one visitor with all
	// requests could always.
	enoughOfVisitors = 10_000
)

// Contradictions lists what was seen that cannot be if a split is in force since
// then, in words. Nothing is said while it is not acknowledged, nor of what was counted
// before it settled.
func Contradictions(split traffic.Split, seen traffic.Observation, since, now time.Time, settles time.Duration) (wrong []string) {
	if since.IsZero() {
		return nil
	}
	var total uint64
	for _, arm := range seen.Arms {
		if arm.Outcomes != nil {
			total += arm.Outcomes.Completed
		}
	}
	for _, share := range split.Shares {
		o := outcomes(seen, share.Variation)
		if o == nil || now.Add(-o.Window).Before(since.Add(settles)) {
			continue
		}
		switch {
		case share.Weight == 0 && o.Completed > strays:
			wrong = append(wrong, fmt.Sprintf("%s has no share and answered %d requests in %s", share.Variation, o.Completed, o.Window.Round(time.Second)))
		case share.Weight > 0 && o.Completed == 0 && total*uint64(share.Weight)/uint64(traffic.Total) >= expected(split.Key): //nolint:gosec // weights are positive
			wrong = append(wrong, fmt.Sprintf("%s has %s %% and answered 0 of %d requests in %s", share.Variation, percent(share.Weight), total, o.Window.Round(time.Second)))
		}
	}
	return wrong
}

func expected(k traffic.Key) uint64 {
	if k.Kind == traffic.PerRequest {
		return enough
	}
	return enoughOfVisitors
}

func outcomes(seen traffic.Observation, variation string) *traffic.Outcomes {
	for _, arm := range seen.Arms {
		if arm.Variation == variation {
			return arm.Outcomes
		}
	}
	return nil
}
