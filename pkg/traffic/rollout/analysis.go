// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// maxSequences of a stage are remembered: each change of an endpoint that clamps makes two.
const maxSequences = 16

// DefaultWarmup is how long new pods may be slow where the spec says nothing.
const DefaultWarmup = 30 * time.Second

// WarmupOf returns how long new pods of a release may be slow, and how long its fresh control is ready before it gets
// requests.
func WarmupOf(r *v1alpha1.ABRelease) time.Duration {
	if in := r.Spec.Rollout; in != nil && in.Analysis != nil {
		return durationOf(in.Analysis.Warmup, DefaultWarmup)
	}
	return DefaultWarmup
}

// Analysis is what is counted of a run, and the splits that belong to its stage.
type Analysis struct {
	Run       int64
	Restarts  int
	Stage     int
	Sequences []uint64
	State     *judge.State
	// Problem says why a stored checkpoint could not be read; empty if it could.
	Problem string
}

// AnalysisOf reads what a status keeps of a run. A checkpoint that cannot be read begins the measurement
// anew, which spends a part of the error.
func AnalysisOf(status *v1alpha1.ABReleaseStatus) Analysis {
	if status.Rollout == nil || status.Rollout.Analysis == nil {
		return Analysis{}
	}
	in := status.Rollout.Analysis
	a := Analysis{Run: in.Run, Restarts: int(in.Restarts), Stage: int(in.Stage)}
	for _, sequence := range in.Sequences {
		a.Sequences = append(a.Sequences, uint64(max(sequence, 0))) //nolint:gosec // it is not negative
	}
	data, err := base64.StdEncoding.DecodeString(in.Checkpoint)
	if err == nil {
		a.State, err = judge.Decode(data)
	}
	if err != nil {
		a.Problem, a.State = err.Error(), judge.New(judge.DefaultR0, a.Restarts+1)
		a.Restarts++
	}
	return a
}

// Follow has the analysis be that of the run under way. It is fresh if nothing was counted of the run
// yet: what is counted before [Analysis.Enter] then belongs to the time before the run.
func (a Analysis) Follow(s State) (next Analysis, isFresh bool) {
	run := s.Run
	if isFresh = a.State == nil || a.Run != run.Number || a.Problem != ""; a.State == nil || a.Run != run.Number {
		a = Analysis{Run: run.Number, State: judge.New(judge.DefaultR0, 0)}
	}
	for restarts := run.restarts(); a.Restarts < restarts; {
		a.State, a.Restarts = a.State.Restart(), a.Restarts+1
	}
	if begins := s.Current() > 0 && a.Stage == 0; !s.IsChecking() && (begins || a.State.R0() != run.ratio()) {
		a.State = a.State.WithRatio(run.ratio()) // what a cohort check has counted is none of the canary's
	}
	return a, isFresh
}

// Enter has the judge count to the stage under way, or to the cohort check; before these it changes nothing. The
// sequence is the one that proxies have acknowledged, with the weight that it gives the canary; 0 if none
// is acknowledged. Latencies of the warmup of the stage do not count.
func (a Analysis) Enter(s State, sequence uint64, weight traffic.Weight, warmup time.Duration) Analysis {
	stage, weighs := s.Current(), s.Weight()
	if stage == 0 && !s.IsChecking() {
		return a
	}
	if a.Stage != stage {
		a.Stage, a.Sequences = stage, nil
	}
	if sequence > 0 && weight == weighs && !slices.Contains(a.Sequences, sequence) {
		a.Sequences = append(slices.Clone(a.Sequences), sequence)
		a.Sequences = a.Sequences[max(0, len(a.Sequences)-maxSequences):]
	}
	a.State.Enter(judge.Stage{Number: max(stage, 1), Sequences: a.Sequences, LatencyFrom: s.latencyFrom(warmup)})
	return a
}

// latencyFrom is when the pods of the stage under way are warm; zero in a cohort check, in which no canary serves. Pods
// are made for a weight just before it is decided, and get their first requests then. At most half of a stage is left
// out: a slow canary would pass a stage that is shorter than the warmup.
func (s State) latencyFrom(warmup time.Duration) time.Time {
	n := s.Current()
	if n == 0 || warmup <= 0 {
		return time.Time{}
	}
	stage := &s.Run.Stages[n-1]
	return stage.ShiftTime.Add(min(warmup, stage.Duration/2))
}

// Write keeps an analysis in a status, and what the judge says for people. Without an assessment, as while
// the router does not answer and after the last stage, the health of the stage stays.
func (a Analysis) Write(status *v1alpha1.RolloutStatus, config *judge.Config, of *judge.Assessment) error {
	out := &v1alpha1.RolloutAnalysis{Run: a.Run, Restarts: int32(a.Restarts), Stage: int32(a.Stage)} //nolint:gosec // few
	for _, sequence := range a.Sequences {
		out.Sequences = append(out.Sequences, int64(sequence)) //nolint:gosec // it does not reach the sign in a lifetime
	}
	data, err := a.State.Encode()
	if err != nil {
		return fmt.Errorf("keeping the analysis of run %d: %w", a.Run, err)
	}
	out.Checkpoint = base64.StdEncoding.EncodeToString(data)
	keepHealth(out, status.Analysis)
	if of != nil {
		out.HealthResult = resultOf(config, of)
	}
	status.Analysis = out
	return nil
}

// FactsOf are the facts about the stage under way that the judge needs beside the counts.
func FactsOf(s State, now time.Time) judge.Facts {
	f := judge.Facts{Now: now}
	n := s.Current()
	if n == 0 {
		return f
	}
	stage := &s.Run.Stages[n-1]
	f.HealthThreshold, f.Minimum, f.Alone, f.UnreadySince = stage.HealthThreshold, stage.Duration, stage.Weight == traffic.Total, stage.ShortSince
	if stage.StartTime.IsZero() {
		return f
	}
	f.SinceStep = now.Sub(stage.StartTime)
	f.Measured = f.SinceStep - stage.Stopped
	if !stage.StoppedSince.IsZero() {
		f.Measured -= now.Sub(stage.StoppedSince)
	}
	return f
}

// HealthOf is the verdict about the stage under way.
func HealthOf(s State, of *judge.Assessment) Health {
	if s.Current() == 0 || of == nil {
		return Health{}
	}
	return Health{Run: s.Run.Number, Stage: s.Current(), ShiftTime: s.Run.Stages[s.Current()-1].ShiftTime, Verdict: of.Verdict, ClockStopped: of.Reason == judge.Blind, Message: Describe(of, s.ComparedWith())}
}

// Describe says in one line what an assessment rests on. control names the variation that the canary is compared with.
func Describe(of *judge.Assessment, control string) string {
	if control != freshControl {
		control = "stable" // the role, whatever the name
	}
	c := &of.Canary
	text := fmt.Sprintf("%s: %s%% errors [%s, %s] in %d requests of the stage, %s %s%%", of.Reason,
		rate(c.Metrics.ErrorRate), rate(c.ErrorRate.Lower), rate(c.ErrorRate.Upper), c.Samples, control, rate(of.Control.Metrics.ErrorRate))
	if of.Verdict == judge.Fail {
		text += fmt.Sprintf("; in the run %d of %d failed, of %s %d of %d", of.Run.Failed, of.Run.Requests, control, of.ControlRun.Failed, of.ControlRun.Requests)
		text += fmt.Sprintf("; errors e %.3g, latency e %.3g, fails at %.0f", of.Errors.E, of.Latency.E, of.Errors.FailsAt)
	}
	return text
}
