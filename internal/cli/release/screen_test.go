// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestClock(t *testing.T) {
	for name, tc := range map[string]struct {
		of   time.Duration
		want string
	}{
		"no time":                       {0, "0s"},
		"parts of a second are cut":     {1900 * time.Millisecond, "1s"},
		"seconds below ten have a zero": {302 * time.Second, "5m02s"},
		"whole minutes have no seconds": {10 * time.Minute, "10m"},
		"hours have no seconds":         {2*time.Hour + 5*time.Minute + 9*time.Second, "2h05m"},
		"days have hours":               {76 * time.Hour, "3d04h"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatClock(tc.of); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for name, tc := range map[string]struct{ got, want string }{
		"digits stand in groups":        {progress.GroupDigits(1234567), "1,234,567"},
		"three digits are one group":    {progress.GroupDigits(123), "123"},
		"a negative number has no gap":  {progress.GroupDigits(-123456), "-123,456"},
		"a rate has two decimals":       {formatRate("0.3167"), "0.32"},
		"a small rate is no zero":       {formatRate("0.0012"), "0.0012"},
		"a zero is a zero":              {formatRate("0"), "0.00"},
		"a rate that is none is shown":  {formatRate("x"), "x"},
		"no rate is unknown":            {formatRate(""), unknown},
		"a share has its decimals":      {formatShare(new(74.6), 1), "74.6 %"},
		"a whole share has no decimals": {formatShare(new(100.0), 2), "100 %"},
		"no share is unknown":           {formatShare(nil, 1), unknown},
		"a stage of a later version":    {stageMark("Later"), "?"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}

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
