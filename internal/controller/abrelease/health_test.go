// SPDX-License-Identifier: Apache-2.0

// One goroutine: the race detector has nothing to say, and takes six times as long.
//go:build !race

package abrelease

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A run that was promoted ends with all requests at the canary, where nothing is compared any more.
func TestTheHealthOfARunIsKeptAtItsEnd(t *testing.T) {
	w, _ := rolling(t)
	w.looks()
	for n := range uint64(12) {
		w.tells(n+1, 0)
		w.look()
	}
	r := w.looks()
	if r.Status.Rollout.Run.State != "Completed" {
		t.Fatalf("the run is %+v", r.Status.Rollout.Run)
	}
	stages := r.Status.Rollout.Analysis.Stages
	if len(stages) != 1 || stages[0].Stage != 1 || stages[0].Verdict != "Pass" || stages[0].Message != "" || stages[0].EvaluationTime == nil {
		t.Fatalf("the stages are %+v", stages)
	}
	stages[0].EvaluationTime = nil
	want := v1alpha1.HealthResult{
		Verdict: "Pass", Reason: "WithinThreshold",
		Errors: &v1alpha1.HealthComparison{EValue: "0.3001", FailsAt: "200", Dispersion: "1", RatioHigh: "3.6489"},
		Variations: []v1alpha1.VariationHealth{
			{Variation: "stable", Healthy: "Enabled", HealthPercentage: "99.4113", SuccessRate: "99.7778", ErrorRate: "0.2222", ErrorRateLow: "0.0685", ErrorRateHigh: "0.5178", Samples: 5400, Cells: 6},
			{Variation: "canary", Healthy: "Enabled", HealthPercentage: "98.7798", SuccessRate: "100", ErrorRate: "0", ErrorRateLow: "0", ErrorRateHigh: "0.8404", Samples: 600, Cells: 6},
		},
	}
	if diff := cmp.Diff(want, stages[0].HealthResult); diff != "" {
		t.Errorf("stage 1 (-want +got):\n%s", diff)
	}
}

func TestTheHealthOfAFailureIsKeptAtTheEnd(t *testing.T) {
	w, _ := rolling(t)
	w.looks()
	for n := range uint64(4) {
		w.tells(n+1, 50)
		w.look()
	}
	for range 3 {
		w.tells(1, 0)
		w.looks()
	}
	a := w.looks().Status.Rollout.Analysis
	if a.Verdict != "Fail" || a.Errors == nil || a.Errors.RatioLow == "" || len(a.Variations) != 2 || a.Variations[1].Samples == 0 || a.Variations[1].Cells == 0 {
		t.Errorf("the analysis is %+v", a)
	}
}

// While the router does not answer, the health of the stage stays.
func TestWithoutAnAnswerTheHealthOfTheStageStays(t *testing.T) {
	w, _ := rolling(t)
	w.looks()
	w.tells(1, 1)
	w.clock.Step(time.Minute)
	before := w.look().Status.Rollout.Analysis
	if before.Verdict == "" || len(before.Variations) != 2 {
		t.Fatalf("the analysis is %+v", before)
	}
	w.router.Deafen(errors.New("it does not answer"))
	w.clock.Step(time.Minute)
	w.look()
	w.clock.Step(time.Minute)
	after := w.look().Status.Rollout.Analysis
	if diff := cmp.Diff(before.HealthResult, after.HealthResult); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
