// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// Tally is what metrics count of one decision. The zero Tally counts nothing.
type Tally struct {
	// Stages are the stages that ended, by their state: Succeeded, Failed or Skipped.
	Stages map[StageState]int
	// Verdicts are those that decided a stage: Pass and Fail, and each time that a stage begins to wait
	// because of BothBad, Undecided or NoData.
	Verdicts map[judge.Verdict]int
	// Durations are the times from the start of a stage's clock to Pass or Fail. A clock that stood counts.
	Durations []VerdictDuration
	// RolledBack says that proxies have acknowledged a rollback, RollbackDuration after it was decided.
	RolledBack       bool
	RollbackDuration time.Duration
	// Counts are the counts of the judge that the decision rests on and that no decision before has stored.
	Counts Counts
}

// Counts are the cells of the canary and of the active variation, and the proxies and parts that have lost
// counts.
type Counts struct{ CanaryCells, ActiveCells, Gaps uint64 }

// CountsOf returns the counts that a judge has taken.
func CountsOf(s *judge.State) Counts {
	var c Counts
	c.CanaryCells, c.ActiveCells, c.Gaps = s.Counted()
	return c
}

// Since returns the counts that were added to earlier ones.
func (c Counts) Since(before Counts) Counts {
	return Counts{c.CanaryCells - min(before.CanaryCells, c.CanaryCells), c.ActiveCells - min(before.ActiveCells, c.ActiveCells), c.Gaps - min(before.Gaps, c.Gaps)}
}

// VerdictDuration is how long a stage was measured until its verdict.
type VerdictDuration struct {
	Verdict  judge.Verdict
	Duration time.Duration
}

// RunStates returns all states of a run, in their order.
func RunStates() []RunState {
	return []RunState{Created, Deploying, Running, Promoting, Completed, RolledBack}
}

// WaitReasons returns all reasons to wait.
func WaitReasons() []WaitReason {
	return []WaitReason{
		WaitStart, WaitDeployment, WaitCapacity, WaitFallback, WaitAcknowledgment, WaitTraffic, WaitMinimumTime, WaitDecision, WaitUndecided,
		WaitData, WaitProxyCounts, WaitBothBad, WaitApproval, WaitAdvance, WaitPaused, WaitFailed, WaitRevision, WaitInvalid, WaitGate, WaitCohortCheck, WaitReturn,
		WaitWork, WaitRefusedWork, WaitTrust, WaitBaseline, WaitBaselinePods, WaitGroupScaled, WaitControl,
	}
}

// TallyOf counts what a decision about these facts has changed. The decision about the same facts with
// the state that follows counts nothing, so a decision is counted once if it is counted when it is stored.
func TallyOf(f Facts, d Decision) Tally {
	t := Tally{Stages: map[StageState]int{}, Verdicts: map[judge.Verdict]int{}}
	before, after := f.Before.Run, d.After.Run
	if before != nil && !before.State.Ended() && (after == nil || after.Number != before.Number) {
		t.leave(before)
	}
	if after == nil {
		return t
	}
	for i := range after.Stages {
		was := StageStatus{}
		if before != nil && before.Number == after.Number && i < len(before.Stages) {
			was = before.Stages[i]
		}
		t.compare(was, after.Stages[i], isUndecided(f.Health, after, i))
	}
	t.fail(after, d.Events, f.Health)
	t.compareEnds(f, d)
	t.compareWaits(f.Before.Waiting, d.After.Waiting)
	return t
}

// leave counts the stage under way of a run that ended because the next run began.
func (t *Tally) leave(run *Run) {
	for _, stage := range run.Stages {
		if stage.State == StageRunning {
			t.Stages[StageSkipped]++
		}
	}
}

// compare counts what has become of a stage, but for a failure.
func (t *Tally) compare(was, is StageStatus, undecided bool) {
	if is.State != was.State || !is.EndTime.Equal(was.EndTime) {
		switch is.State {
		case StageSucceeded, StageSkipped:
			t.Stages[is.State]++
		case StagePending, StageRunning, StageFailed:
		}
	}
	switch {
	case is.PassTime.IsZero() || is.PassTime.Equal(was.PassTime):
	case undecided:
		t.Verdicts[judge.Undecided]++
	default:
		t.decide(judge.Pass, is.StartTime, is.PassTime)
	}
}

// fail counts the stage that failed, by a verdict or by a gate. Its Event tells a failure after a retry apart from the one before,
// which can be in the same second.
func (t *Tally) fail(run *Run, events []Event, h Health) {
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Name == StageHasFailed }) {
		return
	}
	for _, stage := range slices.Backward(run.Stages) { // an earlier one was skipped after its failure
		if stage.State == StageFailed {
			t.Stages[StageFailed]++
			if h.Verdict == judge.Fail {
				t.decide(judge.Fail, stage.StartTime, stage.EndTime)
			}
			return
		}
	}
}

func (t *Tally) decide(verdict judge.Verdict, from, to time.Time) {
	t.Verdicts[verdict]++
	if !from.IsZero() {
		t.Durations = append(t.Durations, VerdictDuration{verdict, max(to.Sub(from), 0)})
	}
}

// isUndecided tells whether a stage that passed did so by onUndecided alone.
func isUndecided(h Health, run *Run, i int) bool {
	return h.Run == run.Number && h.Stage == i+1 && h.Verdict == judge.Undecided && run.Stages[i].isJudged()
}

// compareEnds counts a rollback for want of a verdict, and one that proxies have acknowledged.
func (t *Tally) compareEnds(f Facts, d Decision) {
	before, after := f.Before.Run, d.After.Run
	if before == nil || before.Number != after.Number {
		return
	}
	if !before.State.Ended() && after.State == RolledBack && after.EndReason == EndUndecided {
		t.Verdicts[judge.Undecided]++
	}
	if before.State == RolledBack && f.Before.waitsFor(WaitAcknowledgment) && !d.After.waitsFor(WaitAcknowledgment) && !d.After.waitsFor(WaitReturn) {
		t.RolledBack, t.RollbackDuration = true, max(f.Now.Truncate(time.Second).Sub(after.EndTime), 0)
	}
}

func (s State) waitsFor(reason WaitReason) bool {
	return s.Waiting != nil && s.Waiting.Reason == reason
}

// compareWaits counts a wait that began because of a verdict.
func (t *Tally) compareWaits(was, is *Wait) {
	if is == nil || was != nil && was.Reason == is.Reason && was.Since.Equal(is.Since) {
		return
	}
	switch is.Reason { //nolint:exhaustive // the other waits follow from no verdict
	case WaitBothBad:
		t.Verdicts[judge.BothBad]++
	case WaitUndecided:
		t.Verdicts[judge.Undecided]++
	case WaitData:
		t.Verdicts[judge.NoData]++
	}
}
