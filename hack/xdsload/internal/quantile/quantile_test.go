// SPDX-License-Identifier: Apache-2.0

package quantile_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/quantile"
)

func TestOfNothingIsNothing(t *testing.T) {
	if got := quantile.Of(nil); got != (quantile.Summary{}) {
		t.Errorf("got %+v", got)
	}
}

func TestSoManyDoNotExceedAQuantileAndFewerDoNotExceedTheOneBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 50), func(n int) time.Duration { return time.Duration(n) }), 1, 300).Draw(t, "durations")
		got := quantile.Of(given)
		for percent, q := range map[int]time.Duration{50: got.P50, 99: got.P99, 100: got.Max} {
			within, below := 0, 0
			for _, d := range given {
				if d <= q {
					within++
				}
				if d < q {
					below++
				}
			}
			if within*100 < percent*len(given) || below*100 >= percent*len(given) {
				t.Fatalf("p%d of %v is %v", percent, given, q)
			}
		}
	})
}
