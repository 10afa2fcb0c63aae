// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// The patterns of the schema. The API server refuses a whole status because of one number of another form.
var (
	decimalForm = regexp.MustCompile(`^-?[0-9]{1,15}([.][0-9]{1,9})?$`)
	rateForm    = regexp.MustCompile(`^[0-9]{1,3}([.][0-9]{1,6})?$`)
)

// anyNumber is one that the judge can have, or cannot.
func anyNumber(t *rapid.T, name string) float64 {
	return rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 300), rapid.SampledFrom([]float64{0, 1e300, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1), -1})).Draw(t, name)
}

func TestEachNumberOfTheHealthHasItsForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := func(name string) judge.Interval {
			return judge.Interval{Lower: anyNumber(t, name), Upper: anyNumber(t, name)}
		}
		bet := func(name string) judge.Bet {
			return judge.Bet{E: anyNumber(t, name), FailsAt: anyNumber(t, name), Phi: anyNumber(t, name), Ratio: interval(name), Estimate: anyNumber(t, name)}
		}
		arm := func(name string) judge.HealthResult {
			return judge.HealthResult{
				HealthPercentage: anyNumber(t, name), ErrorRate: interval(name), SlowRate: anyNumber(t, name), EvaluatedAt: noon,
				Metrics: judge.Metrics{SuccessRate: anyNumber(t, name), ErrorRate: anyNumber(t, name)}, Samples: rapid.Uint64().Draw(t, name), Cells: rapid.Uint64().Draw(t, name),
			}
		}
		of := judge.Assessment{
			Verdict: judge.Undecided, Reason: judge.TooFewRequests, Errors: bet("errors"), Latency: bet("latency"), SlowerThan: 100,
			Gaps: rapid.Uint64().Draw(t, "gaps"), Canary: arm("canary"), Control: arm("control"),
		}
		config := judge.DefaultConfig("canary", "stable")
		var status v1alpha1.RolloutStatus
		if err := (rollout.Analysis{Run: 1, Stage: 1, State: judge.New(judge.DefaultR0, 0)}).Write(&status, &config, &of); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*v1alpha1.HealthComparison{status.Analysis.Errors, status.Analysis.Latency} {
			for _, d := range []v1alpha1.Decimal{c.EValue, c.FailsAt, c.Dispersion} {
				if !decimalForm.MatchString(string(d)) {
					t.Fatalf("%q of %+v is no decimal", d, c)
				}
			}
			for _, d := range []v1alpha1.Decimal{c.Ratio, c.RatioLow, c.RatioHigh} {
				if d != "" && !decimalForm.MatchString(string(d)) {
					t.Fatalf("%q of %+v is no decimal", d, c)
				}
			}
		}
		for _, v := range status.Analysis.Variations {
			for _, r := range []v1alpha1.Rate{v.HealthPercentage, v.SuccessRate, v.ErrorRate, v.ErrorRateLow, v.ErrorRateHigh, v.SlowRate} {
				if !rateForm.MatchString(string(r)) {
					t.Fatalf("%q of %+v is no rate", r, v)
				}
			}
			if v.Samples < 0 || v.Cells < 0 || status.Analysis.Gaps < 0 {
				t.Fatalf("a count is negative: %+v", v)
			}
		}
	})
}

// A status keeps the health of the stages before, and none of the run before.
func TestTheHealthOfStagesIsKept(t *testing.T) {
	config := judge.DefaultConfig("canary", "stable")
	var status v1alpha1.RolloutStatus
	write := func(run int64, stage int, verdict judge.Verdict) {
		t.Helper()
		var of *judge.Assessment
		if verdict != "" {
			of = &judge.Assessment{Verdict: verdict, Canary: judge.HealthResult{EvaluatedAt: noon.Add(time.Duration(stage) * time.Minute)}}
		}
		if err := (rollout.Analysis{Run: run, Stage: stage, State: judge.New(judge.DefaultR0, 0)}).Write(&status, &config, of); err != nil {
			t.Fatal(err)
		}
	}
	type kept struct {
		Stage   int32
		Verdict v1alpha1.HealthVerdict
	}
	for _, step := range []struct {
		name    string
		run     int64
		stage   int
		verdict judge.Verdict
		now     v1alpha1.HealthVerdict
		stages  []kept
	}{
		{"before the first stage there is none", 1, 0, "", "", nil},
		{"a stage has its own", 1, 1, judge.Undecided, "Undecided", nil},
		{"a newer one replaces it", 1, 1, judge.Pass, "Pass", nil},
		{"without an answer it stays", 1, 1, "", "Pass", nil},
		{"the next stage begins without", 1, 2, "", "", []kept{{1, "Pass"}}},
		{"the stage before is kept", 1, 2, judge.Pass, "Pass", []kept{{1, "Pass"}}},
		{"a stage of which nothing is known is not kept", 1, 3, "", "", []kept{{1, "Pass"}, {2, "Pass"}}},
		{"a stage that begins again is that under way", 1, 2, judge.Fail, "Fail", []kept{{1, "Pass"}}},
		{"the next run begins anew", 2, 1, judge.NoData, "NoData", nil},
	} {
		write(step.run, step.stage, step.verdict)
		var got []kept
		for _, s := range status.Analysis.Stages {
			got = append(got, kept{s.Stage, s.Verdict})
		}
		if diff := cmp.Diff(step.stages, got); diff != "" || status.Analysis.Verdict != step.now {
			t.Errorf("%s: the verdict is %q, want %q; stages (-want +got):\n%s", step.name, status.Analysis.Verdict, step.now, diff)
		}
	}
}
