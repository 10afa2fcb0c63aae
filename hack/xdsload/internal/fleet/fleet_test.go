// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestOneOfSoManyIsChosen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.IntRange(0, 50).Draw(t, "every")
		chosen := 0
		for i := range 500 {
			if Chosen(i, every) {
				chosen++
			}
		}
		if every == 0 && chosen != 0 || every > 0 && chosen != 500/every {
			t.Fatalf("%d of 500 are chosen when it is one of %d", chosen, every)
		}
	})
}

func TestTheBackoffGrowsToHalfAMinute(t *testing.T) {
	for attempt, most := range map[int]time.Duration{0: 500 * time.Millisecond, 3: 4 * time.Second, 6: 30 * time.Second, 60: 30 * time.Second} {
		var longest time.Duration
		for range 500 {
			longest = max(longest, backoff(attempt))
		}
		if longest > most || longest < most*9/10 {
			t.Errorf("of 500 after %d attempts the longest is %v, want nearly %v", attempt, longest, most)
		}
	}
}
