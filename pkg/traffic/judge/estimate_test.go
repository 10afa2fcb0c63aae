// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// In one stratum the most likely ratio is that of both rates.
func TestTheEstimateOfOneStratumIsTheRatioOfBothRates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := gridOf(rapid.Float64Range(DefaultR0, MaxR0).Draw(t, "r0"))
		n := func(name string) float64 { return float64(rapid.IntRange(1000, 100_000).Draw(t, name)) }
		x := func(name string) float64 { return float64(rapid.IntRange(5, 900).Draw(t, name)) }
		canary, control := tally{n("canary"), x("failed of the canary")}, tally{n("control"), x("failed of the control")}
		want := canary.x / canary.n * control.n / control.x
		if want < 0.05 || want > 20 { // near the ends of the grid
			return
		}
		var logs [lows + bets]int64
		for i := range logs {
			logs[i] = g.logRatio(i, canary, control)
		}
		bounds := ratioBounds(&g, &logs, 1, Shown)
		got := estimateRatio(&g, &logs, bounds)
		if math.Abs(math.Log(got/want)) > 0.02 {
			t.Fatalf("the estimate is %v, want %v", got, want)
		}
		if got < bounds.Lower || bounds.Upper > 0 && got > bounds.Upper {
			t.Fatalf("the estimate %v is out of its bounds %v", got, bounds)
		}
	})
}

func TestAnEstimateThatIsNotKnown(t *testing.T) {
	g := gridOf(DefaultR0)
	for name, tc := range map[string]struct{ canary, control tally }{
		"without failures":                   {tally{100, 0}, tally{900, 0}},
		"without failures of the canary":     {tally{100, 0}, tally{900, 9}},
		"without failures of the control":    {tally{100, 5}, tally{900, 0}},
		"with a ratio above that of the bet": {tally{100, 90}, tally{1e6, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var logs [lows + bets]int64
			for i := range logs {
				logs[i] = g.logRatio(i, tc.canary, tc.control)
			}
			if got := estimateRatio(&g, &logs, Interval{}); got != 0 {
				t.Errorf("got %v, want none", got)
			}
		})
	}
}
