// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Whatever a status has, no line is wider than the screen.
func TestScreen_FitsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rolling()
		text := rapid.StringN(1, 300, -1)
		r.Name, r.Status.Rollout.Run.From.Image, r.Status.Rollout.Run.To.Image = text.Draw(t, "name"), text.Draw(t, "from"), text.Draw(t, "to")
		r.Status.Rollout.Waiting.Message, r.Status.Rollout.Analysis.Message = text.Draw(t, "wait"), text.Draw(t, "verdict")
		r.Status.Acknowledged.OutOfSync = []v1alpha1.OutOfSyncProxy{{Name: text.Draw(t, "proxy"), Why: text.Draw(t, "why")}}
		stages := r.Status.Rollout.Run.Stages
		for len(stages) < rapid.IntRange(3, 16).Draw(t, "stages") {
			stages = append(stages, stages[1])
		}
		r.Status.Rollout.Run.Stages = stages
		long := v1alpha1.VariationName(rapid.StringMatching(`[a-z]{1,63}`).Draw(t, "variation"))
		r.Spec.Variations[0].Name, r.Status.Wanted[0].Variation, r.Status.Observed[0].Variation, r.Status.Rollout.Analysis.Variations[0].Variation = long, long, long, long
		h := &r.Status.Rollout.Analysis.Variations[0]
		h.Samples, h.LatencyP99Milliseconds = rapid.Int64Range(0, 1e12).Draw(t, "samples"), rapid.Int64Range(0, 1e7).Draw(t, "p99")
		h.ErrorRate, h.ErrorRateLow, h.ErrorRateHigh = "100", "99.9999", "100"
		e := r.Status.Rollout.Analysis.Errors
		e.EValue, e.FailsAt, e.RatioHigh = v1alpha1.Decimal(text.Draw(t, "e")), v1alpha1.Decimal(text.Draw(t, "limit")), v1alpha1.Decimal(text.Draw(t, "ratio"))
		screen := progress.ScreenOf(r, clitest.Now)
		screen.Trail.Errors = rapid.SliceOfN(rapid.Float64Range(0, 1e9), 0, 24).Draw(t, "bets")
		for _, line := range drawScreen(&screen) {
			if n := utf8.RuneCountInString(line); n > screenWidth {
				t.Fatalf("%d columns: %q", n, line)
			}
		}
	})
}
