// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The times of a forecast are near the medians of the simulation that docs/reference/judge.md tells of.
func TestForesee_IsNearTheMedianOfSimulatedRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		perMinute   int
		share, base float64
		factor      float64
		fresh       bool
	}{
		"a tenth of a busy Service, tenfold":     {3000, 0.1, 0.003, 10, false},
		"a tenth of a busy Service, threefold":   {3000, 0.1, 0.01, 3, false},
		"half of a busy Service, threefold":      {3000, 0.5, 0.01, 3, false},
		"a quarter of a small Service, tenfold":  {600, 0.25, 0.003, 10, false},
		"a tenth beside a fresh control":         {3000, 0.1, 0.003, 10, true},
		"a tenth of a busy Service that is well": {3000, 0.1, 0.003, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := usual()
			w.perMinute, w.share, w.base, w.factor, w.minutes = tc.perMinute, tc.share, tc.base, always(tc.factor), 60
			prospect := Prospect{Share: tc.share, Minimum: time.Minute, HealthThreshold: w.threshold}
			if w.fresh = tc.fresh; tc.fresh {
				prospect.Control = tc.share
			}
			f := w.many(30)
			config := DefaultConfig("canary", "stable")
			o := Foresee(&config, Load{float64(tc.perMinute), tc.base}, []Prospect{prospect})[0]
			got, want := o.Tenfold, f.median
			switch tc.factor {
			case 3:
				got = o.Threefold
			case 1:
				got, want = o.Healthy, f.passMedian
			}
			if seconds := int(got / time.Second); seconds > 2*want || 2*seconds < want {
				t.Errorf("the forecast is %s, and the median of the simulation %d s", got, want)
			}
		})
	}
}

func TestForesee_FollowsTheLoad(t *testing.T) {
	config := DefaultConfig("canary", "stable")
	rapid.Check(t, func(t *rapid.T) {
		load := Load{rapid.Float64Range(1, 1e7).Draw(t, "requests"), rapid.Float64Range(0, 0.02).Draw(t, "errors")}
		var stages []Prospect
		for range rapid.IntRange(1, 4).Draw(t, "stages") {
			stages = append(stages, Prospect{Share: rapid.Float64Range(0.01, 0.9).Draw(t, "share"), Minimum: time.Duration(rapid.IntRange(0, 7200).Draw(t, "minimum")) * time.Second, HealthThreshold: 9500})
		}
		got := Foresee(&config, load, stages)
		if len(got) != len(stages) {
			t.Fatalf("%d outlooks for %d stages", len(got), len(stages))
		}
		for i, o := range got {
			if o.Healthy != 0 && o.Healthy < stages[i].Minimum {
				t.Fatalf("stage %d passes after %s, and takes at least %s", i+1, o.Healthy, stages[i].Minimum)
			}
			if o.Threefold != 0 && (o.Tenfold == 0 || o.Tenfold > o.Threefold) {
				t.Fatalf("stage %d: a tenfold rate is found after %s, and a threefold one after %s", i+1, o.Tenfold, o.Threefold)
			}
			for _, after := range []time.Duration{o.Tenfold, o.Threefold, o.Healthy} {
				if after < 0 || after > ForecastHorizon {
					t.Fatalf("stage %d: %s", i+1, after)
				}
			}
		}
	})
}

func TestForesee_OfALoadThatShowsNothing(t *testing.T) {
	config := DefaultConfig("canary", "stable")
	stage := Prospect{Share: 0.1, Minimum: time.Minute, HealthThreshold: 9500}
	for name, tc := range map[string]struct {
		load Load
		want Outlook
	}{
		"without requests nothing is found, and nothing passes": {Load{0, 0.01}, Outlook{}},
		"without errors no multiple of them is found":           {Load{6000, 0}, Outlook{Healthy: time.Minute}},
		"errors that do not matter are ignored":                 {Load{6000, 0.0001}, Outlook{Healthy: time.Minute}},
		"numbers that cannot be are none":                       {Load{math.NaN(), -1}, Outlook{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Foresee(&config, tc.load, []Prospect{stage})[0]; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
