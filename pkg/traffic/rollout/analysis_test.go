// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// onStage is run 3 in a stage of two, of which the second one has all requests.
func onStage(number int, change ...func(*rollout.StageStatus)) rollout.State {
	run := &rollout.Run{Number: 3, State: rollout.Running, Active: "stable", Canary: "canary", Stages: []rollout.StageStatus{
		{Stage: rollout.Stage{Weight: 10_00, Duration: time.Minute, HealthThreshold: 99_00}, State: rollout.StagePending},
		{Stage: rollout.Stage{Weight: traffic.Total, Duration: time.Hour, HealthThreshold: 98_00}, State: rollout.StagePending},
	}}
	for i := range number {
		run.Stages[i].State = rollout.StageSucceeded
	}
	if number > 0 {
		stage := &run.Stages[number-1]
		stage.State = rollout.StageRunning
		for _, c := range change {
			c(stage)
		}
	}
	return rollout.State{Run: run}
}

func TestFactsOf(t *testing.T) {
	now := noon.Add(10 * time.Minute)
	begun := func(s *rollout.StageStatus) { s.StartTime = noon }
	tests := map[string]struct {
		state rollout.State
		want  judge.Facts
	}{
		"no run":                     {rollout.State{}, judge.Facts{Now: now}},
		"a run before its stages":    {onStage(0), judge.Facts{Now: now}},
		"a run that was rolled back": {func() rollout.State { s := onStage(1, begun); s.Run.State = rollout.RolledBack; return s }(), judge.Facts{Now: now}},
		"a stage whose weight no proxy has acknowledged": {
			onStage(1), judge.Facts{Now: now, HealthThreshold: 99_00, Minimum: time.Minute},
		},
		"a stage that is measured": {
			onStage(1, begun),
			judge.Facts{Now: now, HealthThreshold: 99_00, Minimum: time.Minute, SinceStep: 10 * time.Minute, Measured: 10 * time.Minute},
		},
		"a stage with all requests has no control": {
			onStage(2, begun),
			judge.Facts{Now: now, HealthThreshold: 98_00, Minimum: time.Hour, Alone: true, SinceStep: 10 * time.Minute, Measured: 10 * time.Minute},
		},
		"a clock that stood": {
			onStage(1, begun, func(s *rollout.StageStatus) { s.Stopped = 3 * time.Minute }),
			judge.Facts{Now: now, HealthThreshold: 99_00, Minimum: time.Minute, SinceStep: 10 * time.Minute, Measured: 7 * time.Minute},
		},
		"a clock that stood, and stands again": {
			onStage(1, begun, func(s *rollout.StageStatus) {
				s.Stopped, s.StoppedSince = 3*time.Minute, noon.Add(8*time.Minute)
			}),
			judge.Facts{Now: now, HealthThreshold: 99_00, Minimum: time.Minute, SinceStep: 10 * time.Minute, Measured: 5 * time.Minute},
		},
		"a canary with too few endpoints": {
			onStage(1, begun, func(s *rollout.StageStatus) { s.ShortSince = noon.Add(time.Minute) }),
			judge.Facts{
				Now: now, HealthThreshold: 99_00, Minimum: time.Minute, SinceStep: 10 * time.Minute, Measured: 10 * time.Minute,
				UnreadySince: noon.Add(time.Minute),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rollout.FactsOf(tc.state, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// seen is the part of an analysis that a case states.
type seen struct {
	Run                int64
	Restarts, OfJudge  int
	Stage              int
	Sequences          []uint64
	Problem            bool
	IsFresh, IsCounted bool
}

func see(a rollout.Analysis, isFresh bool) seen {
	return seen{a.Run, a.Restarts, a.State.Restarts(), a.Stage, a.Sequences, a.Problem != "", isFresh, a.State != nil}
}

func TestAnAnalysisFollowsItsRun(t *testing.T) {
	restarted := func(n int) rollout.State {
		return onStage(1, func(s *rollout.StageStatus) { s.Restarts = n })
	}
	tests := map[string]struct {
		before rollout.Analysis
		state  rollout.State
		want   seen
	}{
		"nothing was counted": {
			rollout.Analysis{}, onStage(1), seen{Run: 3, IsFresh: true, IsCounted: true},
		},
		"the run goes on": {
			rollout.Analysis{Run: 3, Stage: 1, Sequences: []uint64{7}, State: judge.New(judge.DefaultR0, 0)}, onStage(1),
			seen{Run: 3, Stage: 1, Sequences: []uint64{7}, IsCounted: true},
		},
		"another run began": {
			rollout.Analysis{Run: 2, Restarts: 1, Stage: 1, Sequences: []uint64{7}, State: judge.New(judge.DefaultR0, 1)}, onStage(1),
			seen{Run: 3, IsFresh: true, IsCounted: true},
		},
		"a measurement began anew, which spends a part of the error": {
			rollout.Analysis{Run: 3, Stage: 1, State: judge.New(judge.DefaultR0, 0)}, restarted(2),
			seen{Run: 3, Restarts: 2, OfJudge: 2, Stage: 1, IsCounted: true},
		},
		"a measurement that began anew before is counted once": {
			rollout.Analysis{Run: 3, Restarts: 2, State: judge.New(judge.DefaultR0, 2)}, restarted(2),
			seen{Run: 3, Restarts: 2, OfJudge: 2, IsCounted: true},
		},
		"a new run whose measurement began anew": {
			rollout.Analysis{}, restarted(1), seen{Run: 3, Restarts: 1, OfJudge: 1, IsFresh: true, IsCounted: true},
		},
		"a checkpoint that could not be read": {
			rollout.Analysis{Run: 3, Restarts: 1, Problem: "cut off", State: judge.New(judge.DefaultR0, 1)}, onStage(1),
			seen{Run: 3, Restarts: 1, OfJudge: 1, Problem: true, IsFresh: true, IsCounted: true},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, see(tc.before.Follow(tc.state))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A cohort check that ended with the default ratio left its counts in the first stage.
func TestTheFirstStageCountsNothingOfItsCohortCheck(t *testing.T) {
	config := judge.DefaultConfig("canary", "stable")
	checking := onStage(0)
	checking.Run.State, checking.Run.Check = rollout.Deploying, &rollout.CohortCheck{Duration: time.Minute, ShiftTime: noon, StartTime: noon}
	a := rollout.Analysis{Run: 3, State: judge.New(judge.DefaultR0, 0)}.Enter(checking, 7, 10_00, time.Minute)
	a.State.Count(&config, cohortCells(7))
	if canary, control, _ := a.State.Counted(); canary != 1 || control != 1 {
		t.Fatalf("the check has counted %d and %d cells", canary, control)
	}
	for _, ratio := range []float64{judge.DefaultR0, 2} {
		stage := onStage(1)
		stage.Run.Check = &rollout.CohortCheck{Duration: time.Minute, ShiftTime: noon, StartTime: noon, EndTime: noon.Add(time.Minute), Ratio: ratio}
		next, isFresh := a.Follow(stage)
		next = next.Enter(stage, 8, 10_00, 0)
		if canary, control, _ := next.State.Counted(); canary != 0 || control != 0 || isFresh || next.State.R0() != ratio {
			t.Errorf("after a check with the ratio %g, %d and %d cells are counted, and the ratio is %g", ratio, canary, control, next.State.R0())
		}
		next.State.Count(&config, cohortCells(8))
		if again, _ := next.Follow(stage); again.State != next.State {
			t.Errorf("after a check with the ratio %g, the stage that goes on forgets its counts", ratio)
		}
	}
}

// cohortCells are one cell of each variation.
func cohortCells(sequence uint64) *traffic.Measurement {
	m := &traffic.Measurement{Next: traffic.Cursor{"a": {Epoch: 1, Cell: 2 * sequence}}, Wanted: 1}
	for i, variation := range []string{"stable", "canary"} {
		start := noon.Add(time.Duration(sequence) * 10 * time.Second)
		m.Cells = append(m.Cells, traffic.Cell{
			Part: "a", Position: traffic.Position{Epoch: 1, Cell: 2*sequence - uint64(1-i)}, Variation: variation, Port: 80, Sequence: sequence, //nolint:gosec // two
			Start: start, From: start, To: start.Add(10 * time.Second), Over: 1000, Failed: 30,
			Spread:   traffic.Spread{Proxies: 1, N: 1000, X: 30, NN: 1000 * 1000, XN: 30 * 1000, XX: 30 * 30},
			Coverage: traffic.Coverage{Expected: 1, Telling: 1},
		})
	}
	return m
}

// numbers from 1 to n.
func numbers(n uint64) (all []uint64) {
	for i := uint64(1); i <= n; i++ {
		all = append(all, i)
	}
	return all
}

func TestOnlySequencesOfTheStageAreCounted(t *testing.T) {
	tests := map[string]struct {
		before   rollout.Analysis
		state    rollout.State
		sequence uint64
		weight   traffic.Weight
		stage    int
		want     []uint64
	}{
		"before the first stage":                  {rollout.Analysis{}, onStage(0), 7, 10_00, 0, nil},
		"the weight of the stage":                 {rollout.Analysis{}, onStage(1), 7, 10_00, 1, []uint64{7}},
		"the weight of the stage before":          {rollout.Analysis{Stage: 1, Sequences: []uint64{7}}, onStage(2), 7, 10_00, 2, nil},
		"the first sequence of the next stage":    {rollout.Analysis{Stage: 1, Sequences: []uint64{7}}, onStage(2), 8, traffic.Total, 2, []uint64{8}},
		"another sequence with the same weight":   {rollout.Analysis{Stage: 1, Sequences: []uint64{7}}, onStage(1), 9, 10_00, 1, []uint64{7, 9}},
		"the same sequence again":                 {rollout.Analysis{Stage: 1, Sequences: []uint64{7, 9}}, onStage(1), 7, 10_00, 1, []uint64{7, 9}},
		"no acknowledged sequence":                {rollout.Analysis{Stage: 1, Sequences: []uint64{7}}, onStage(1), 0, 10_00, 1, []uint64{7}},
		"more sequences than are remembered":      {rollout.Analysis{Stage: 1, Sequences: numbers(16)}, onStage(1), 17, 10_00, 1, numbers(17)[1:]},
		"as many sequences as are remembered":     {rollout.Analysis{Stage: 1, Sequences: numbers(15)}, onStage(1), 16, 10_00, 1, numbers(16)},
		"a stage without requests for the canary": {rollout.Analysis{}, onStage(1, func(s *rollout.StageStatus) { s.Weight = 0 }), 7, 0, 1, []uint64{7}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.before.State = judge.New(judge.DefaultR0, 0)
			kept := slices.Clone(tc.before.Sequences)
			got := tc.before.Enter(tc.state, tc.sequence, tc.weight, 0)
			if diff := cmp.Diff(tc.want, got.Sequences); diff != "" || got.Stage != tc.stage {
				t.Errorf("stage %d, want %d; sequences (-want +got):\n%s", got.Stage, tc.stage, diff)
			}
			if diff := cmp.Diff(kept, tc.before.Sequences); diff != "" {
				t.Errorf("the analysis before has other sequences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAnalysisIsReadAsItIsWritten(t *testing.T) {
	config := judge.DefaultConfig("canary", "stable")
	a := rollout.Analysis{Run: 3, Restarts: 2, Stage: 1, Sequences: []uint64{7, 9}, State: judge.New(judge.DefaultR0, 2)}
	a.State.Enter(judge.Stage{Number: 1, Sequences: a.Sequences})
	of := judge.Judge(a.State, &config, &judge.Facts{Now: noon.Add(1500 * time.Millisecond), HealthThreshold: 99_00})
	of.Canary.Metrics = judge.Metrics{SuccessRate: 0.98765432, ErrorRate: 0.01234568, LatencyP50: 10, LatencyP99: 250}
	of.Canary.HealthPercentage, of.Canary.Samples, of.Canary.ErrorRate = 97.5, 1234, judge.Interval{Lower: -0.1, Upper: 1.5}
	of.Control.Healthy = true
	status := &v1alpha1.RolloutStatus{}
	if err := a.Write(status, &config, &of); err != nil {
		t.Fatal(err)
	}
	canary := v1alpha1.VariationHealth{
		Variation: "canary", Healthy: v1alpha1.Disabled, HealthPercentage: "97.5", SuccessRate: "98.7654", ErrorRate: "1.2346",
		ErrorRateLow: "0", ErrorRateHigh: "100", LatencyP50Milliseconds: 10, LatencyP99Milliseconds: 250, Samples: 1234,
	}
	got := status.Analysis
	if len(got.Variations) != 2 || got.Variations[0].Variation != "stable" || got.Variations[0].Healthy != v1alpha1.Enabled {
		t.Errorf("the variations are %+v, want the stable one first, and healthy", got.Variations)
	}
	if diff := cmp.Diff(canary, got.Variations[1]); diff != "" {
		t.Errorf("the canary (-want +got):\n%s", diff)
	}
	if want := metav1.NewTime(noon.Add(time.Second)); got.EvaluationTime == nil || !got.EvaluationTime.Equal(&want) {
		t.Errorf("evaluated at %s, want whole seconds: %s", got.EvaluationTime, want)
	}
	if got.Verdict != v1alpha1.HealthVerdict(of.Verdict) || got.Reason != string(of.Reason) || got.Message != rollout.Describe(&of, "stable") {
		t.Errorf("the verdict is %s %s: %s", got.Verdict, got.Reason, got.Message)
	}
	back := rollout.AnalysisOf(&v1alpha1.ABReleaseStatus{Rollout: status})
	if diff := cmp.Diff(see(a, false), see(back, false)); diff != "" {
		t.Errorf("read back (-written +read):\n%s", diff)
	}
	before, err := a.State.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if after, err := back.State.Encode(); err != nil || string(before) != string(after) {
		t.Errorf("the counts differ, error %v", err)
	}
	if err := a.Write(status, &config, nil); err != nil || status.Analysis.Verdict != got.Verdict || len(status.Analysis.Variations) != 2 {
		t.Errorf("without an assessment it keeps %+v, error %v", status.Analysis, err)
	}
	a.Run++
	if err := a.Write(status, &config, nil); err != nil || status.Analysis.Verdict != "" || status.Analysis.Variations != nil {
		t.Errorf("without an assessment of the next run it writes %+v, error %v", status.Analysis, err)
	}
}

// A checkpoint that a writer spoiled never counts as a good one: the measurement begins anew with less
// of the error left.
func TestAnAnalysisThatCannotBeReadBeginsAnew(t *testing.T) {
	whole := &v1alpha1.RolloutStatus{}
	a := rollout.Analysis{Run: 3, State: judge.New(judge.DefaultR0, 0)}
	if err := a.Write(whole, nil, nil); err != nil {
		t.Fatal(err)
	}
	for name, checkpoint := range map[string]string{
		"no base64": "?", "another text": "aGVsbG8=", "cut off": whole.Analysis.Checkpoint[:8], "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			status := &v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{Analysis: &v1alpha1.RolloutAnalysis{
				Run: 3, Restarts: 1, Stage: 1, Sequences: []int64{-1, 7}, Checkpoint: checkpoint,
			}}}
			want := seen{Run: 3, Restarts: 2, OfJudge: 2, Stage: 1, Sequences: []uint64{0, 7}, Problem: true, IsCounted: true}
			if diff := cmp.Diff(want, see(rollout.AnalysisOf(status), false)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, status := range map[string]*v1alpha1.ABReleaseStatus{
		"no rollout": {}, "no analysis": {Rollout: &v1alpha1.RolloutStatus{}},
	} {
		if diff := cmp.Diff(rollout.Analysis{}, rollout.AnalysisOf(status)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHealthOf(t *testing.T) {
	of := func(verdict judge.Verdict, reason judge.Reason) *judge.Assessment {
		return &judge.Assessment{Verdict: verdict, Reason: reason}
	}
	tests := map[string]struct {
		state rollout.State
		of    *judge.Assessment
		want  string
	}{
		"a stage that passes":           {onStage(2), of(judge.Pass, judge.WithinThreshold), "run 3, stage 2: Pass"},
		"a stage that fails":            {onStage(1), of(judge.Fail, judge.Errors), "run 3, stage 1: Fail"},
		"counts that do not suffice":    {onStage(1), of(judge.Undecided, judge.Blind), "run 3, stage 1: Undecided, the clock stands"},
		"a run before its first stage":  {onStage(0), of(judge.Pass, judge.WithinThreshold), "none"},
		"a stage that was never judged": {onStage(1), nil, "none"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h, got := rollout.HealthOf(tc.state, tc.of), "none"
			if h.Run != 0 {
				got = fmt.Sprintf("run %d, stage %d: %s", h.Run, h.Stage, h.Verdict)
				if h.ClockStopped {
					got += ", the clock stands"
				}
				if h.Message != rollout.Describe(tc.of, "stable") {
					t.Errorf("it says %q", h.Message)
				}
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// slowCell tells of 1000 requests, of which some are slow.
func slowCell(variation string, number uint64, from time.Time, slow uint64) traffic.Cell {
	return traffic.Cell{
		Part: "a", Position: traffic.Position{Epoch: 1, Cell: number}, Variation: variation, Port: 80, Sequence: 7,
		Start: from, From: from, To: from.Add(10 * time.Second), Over: 1000, Latency: []uint64{1000 - slow, slow, 0},
		Spread: traffic.Spread{Proxies: 1, N: 1000, NN: 1000 * 1000}, Coverage: traffic.Coverage{Expected: 1, Telling: 1},
	}
}

// New pods are slow whatever their version is. Latencies of the first 30 seconds failed a good canary.
func TestNoLatencyOfTheWarmupCounts(t *testing.T) {
	config := judge.DefaultConfig("canary", "stable")
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(most int, name string) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second
		}
		warmup, duration := seconds(90, "warmup"), seconds(120, "duration")
		state := onStage(1, func(s *rollout.StageStatus) { s.Duration, s.ShiftTime = duration, noon.Add(seconds(20, "shift")) })
		a := rollout.Analysis{Run: 3, State: judge.New(judge.DefaultR0, 0)}
		a.State.Count(&config, &traffic.Measurement{Next: traffic.Cursor{"a": {Epoch: 1, Cell: 1}}, Wanted: 1, Cells: []traffic.Cell{slowCell("stable", 1, noon.Add(-time.Minute), 0)}})
		a = a.Enter(state, 7, 10_00, warmup)
		warm, counted, slow := time.Time{}, uint64(0), uint64(0)
		if warmup > 0 {
			warm = state.Run.Stages[0].ShiftTime.Add(min(warmup, duration/2))
		}
		for n := range uint64(rapid.IntRange(1, 12).Draw(t, "cells")) {
			cell := slowCell("canary", n+2, noon.Add(time.Duration(n)*10*time.Second+seconds(9, "from")), rapid.Uint64Range(0, 1000).Draw(t, "slow"))
			a.State.Count(&config, &traffic.Measurement{Next: traffic.Cursor{"a": cell.Position}, Wanted: 1, Cells: []traffic.Cell{cell}})
			if !cell.From.Before(warm) {
				counted, slow = counted+1000, slow+cell.Latency[1]
			}
		}
		want := 0.0
		if counted > 0 {
			want = float64(slow) / float64(counted)
		}
		of := judge.Judge(a.State, &config, &judge.Facts{Now: noon.Add(time.Hour)})
		if got := of.Canary.SlowRate; got != want {
			t.Errorf("%g of the requests are slow, want %g of %d", got, want, counted)
		}
		if again := a.Enter(state, 7, 10_00, warmup); judge.Judge(again.State, &config, &judge.Facts{Now: noon.Add(time.Hour)}).Canary.SlowRate != want {
			t.Errorf("the next look counts something else")
		}
	})
}

func TestTheWarmupOfARelease(t *testing.T) {
	of := func(in *v1alpha1.Rollout) time.Duration {
		return rollout.WarmupOf(&v1alpha1.ABRelease{Spec: v1alpha1.ABReleaseSpec{Rollout: in}})
	}
	set := func(d *metav1.Duration) *v1alpha1.Rollout {
		return &v1alpha1.Rollout{Analysis: &v1alpha1.RolloutAnalysisSpec{Warmup: d}}
	}
	for name, tc := range map[string]struct{ got, want time.Duration }{
		"no rollout":  {of(nil), rollout.DefaultWarmup},
		"no analysis": {of(&v1alpha1.Rollout{}), rollout.DefaultWarmup},
		"left out":    {of(set(nil)), rollout.DefaultWarmup},
		"none":        {of(set(&metav1.Duration{})), 0},
		"given":       {of(set(&metav1.Duration{Duration: time.Minute})), time.Minute},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", name, tc.got, tc.want)
		}
	}
}
