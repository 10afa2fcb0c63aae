// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

func TestParseLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		requests, errors string
		want             *judge.Load
		isWrong          bool
	}{
		"no load is given":               {"", "", nil, false},
		"errors are a percentage":        {"3000", "0.3", &judge.Load{RequestsPerMinute: 3000, ErrorRate: 0.003}, false},
		"a percent sign is taken":        {"0.5", "100%", &judge.Load{RequestsPerMinute: 0.5, ErrorRate: 1}, false},
		"errors alone are no load":       {"", "1", nil, true},
		"requests alone are no load":     {"1", "", nil, true},
		"no request is no load":          {"0", "1", nil, true},
		"too many requests are no load":  {"1e300", "1", nil, true},
		"no number of requests":          {"NaN", "1", nil, true},
		"no number of errors":            {"1", "few", nil, true},
		"more errors than requests":      {"1", "100.1", nil, true},
		"fewer errors than none":         {"1", "-1", nil, true},
		"errors that are no number fail": {"1", "NaN", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLoad(tc.requests, tc.errors)
			if (err != nil) != tc.isWrong {
				t.Fatalf("the error is %v", err)
			}
			if (got == nil) != (tc.want == nil) {
				t.Fatalf("got %+v, want %+v", got, tc.want)
			}
			if got != nil && cmp.Diff(*tc.want, got.Load) != "" {
				t.Errorf("got %+v, want %+v", got.Load, *tc.want)
			}
		})
	}
}

func TestLoadOf(t *testing.T) {
	observed := func(name v1alpha1.VariationName, requests, failed int64, window int32) v1alpha1.ObservedVariation {
		return v1alpha1.ObservedVariation{Variation: name, Requests: &requests, Failed: &failed, WindowSeconds: window}
	}
	for name, tc := range map[string]struct {
		active   v1alpha1.VariationName
		observed []v1alpha1.ObservedVariation
		want     *Load
	}{
		"the requests of both, and the errors of the active one": {
			"b", []v1alpha1.ObservedVariation{observed("a", 100, 50, 60), observed("b", 900, 9, 60)},
			&Load{judge.Load{RequestsPerMinute: 1000, ErrorRate: 0.01}, "status.observed of the release, the last 1m0s"},
		},
		"before the first run the stable one is active": {
			"", []v1alpha1.ObservedVariation{observed("a", 100, 50, 30), observed("b", 0, 0, 30)},
			&Load{judge.Load{RequestsPerMinute: 200, ErrorRate: 0.5}, "status.observed of the release, the last 30s"},
		},
		"a count that is missing":   {"a", []v1alpha1.ObservedVariation{observed("a", 100, 50, 60), {Variation: "b"}}, nil},
		"a window that is missing":  {"a", []v1alpha1.ObservedVariation{observed("a", 100, 50, 0)}, nil},
		"no requests are no load":   {"a", []v1alpha1.ObservedVariation{observed("a", 0, 0, 60)}, nil},
		"a release without a split": {"a", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{}
			r.Spec.Stable, r.Status.ActiveVariation, r.Status.Observed = "a", tc.active, tc.observed
			if diff := cmp.Diff(tc.want, LoadOf(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestForecastOf(t *testing.T) {
	busy := &Load{Load: judge.Load{RequestsPerMinute: 6000, ErrorRate: 0.003}}
	f := ForecastOf(ramp(10, 50, 100), busy, v1alpha1.ControlStable)
	if f == nil || len(f.Stages) != 3 {
		t.Fatalf("%+v", f)
	}
	sum := time.Duration(0)
	for _, s := range f.Stages {
		sum += s.Healthy
	}
	if f.Healthy != sum || sum < 3*time.Minute {
		t.Errorf("a healthy canary takes %s, and its stages %s", f.Healthy, sum)
	}
	if f := ForecastOf(ramp(10, 100), &Load{Load: judge.Load{RequestsPerMinute: 1e-6}}, v1alpha1.ControlStable); f == nil || f.Healthy != 0 {
		t.Errorf("without requests no stage passes: %+v", f)
	}
	for name, f := range map[string]*Forecast{"no strategy": ForecastOf(nil, busy, v1alpha1.ControlStable), "no load": ForecastOf(ramp(10), nil, v1alpha1.ControlStable), "a faulty strategy": ForecastOf(ramp(50, 10), busy, v1alpha1.ControlStable)} {
		if f != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Whatever a person gives, a load is a number that the judge takes.
func FuzzParseLoad(f *testing.F) {
	f.Add("3000", "0.3")
	f.Add("1e9", "100%")
	f.Add("NaN", "-0")
	f.Add("0x1p-2", "%")
	f.Fuzz(func(t *testing.T, requests, errors string) {
		load, err := ParseLoad(requests, errors)
		if err != nil || load == nil {
			return
		}
		if !(load.RequestsPerMinute > 0 && load.RequestsPerMinute <= maxRequestsPerMinute) || !(load.ErrorRate >= 0 && load.ErrorRate <= 1) {
			t.Errorf("%q, %q: %+v", requests, errors, load.Load)
		}
	})
}
