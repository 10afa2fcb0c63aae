// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// running is run 1 with one stage of 10 %.
func running(stage rollout.StageStatus) rollout.State {
	stage.Weight, stage.Duration = 1000, time.Minute
	return rollout.State{Run: &rollout.Run{Number: 1, State: rollout.Running, Stages: []rollout.StageStatus{stage}}}
}

func ended(s rollout.State, reason rollout.EndReason) rollout.State {
	s.Run.State, s.Run.EndReason, s.Run.EndTime = rollout.RolledBack, reason, noon
	return s
}

func waiting(s rollout.State, reason rollout.WaitReason, since time.Time) rollout.State {
	s.Waiting = &rollout.Wait{Reason: reason, Since: since}
	return s
}

func TestTallyOf(t *testing.T) {
	begun := rollout.StageStatus{State: rollout.StageRunning, StartTime: noon}
	later := noon.Add(90 * time.Second)
	passed := rollout.StageStatus{State: rollout.StageRunning, StartTime: noon, PassTime: later}
	failed := rollout.StageStatus{State: rollout.StageFailed, StartTime: noon, EndTime: later}
	undecided, bad := rollout.Health{Run: 1, Stage: 1, Verdict: judge.Undecided}, rollout.Health{Run: 1, Stage: 1, Verdict: judge.Fail}
	for name, c := range map[string]struct {
		before, after rollout.State
		health        rollout.Health
		failed        bool // an Event tells so
		want          rollout.Tally
	}{
		"a stage that goes on counts nothing": {before: running(begun), after: running(begun)},
		"a stage that passes": {before: running(begun), after: running(passed), want: rollout.Tally{
			Verdicts:  map[judge.Verdict]int{judge.Pass: 1},
			Durations: []rollout.VerdictDuration{{Verdict: judge.Pass, Duration: 90 * time.Second}},
		}},
		"a stage that passes by onUndecided": {before: running(begun), after: running(passed), health: undecided, want: rollout.Tally{
			Verdicts: map[judge.Verdict]int{judge.Undecided: 1},
		}},
		"a stage that fails": {before: running(begun), after: running(failed), health: bad, failed: true, want: rollout.Tally{
			Stages: map[rollout.StageState]int{rollout.StageFailed: 1}, Verdicts: map[judge.Verdict]int{judge.Fail: 1},
			Durations: []rollout.VerdictDuration{{Verdict: judge.Fail, Duration: 90 * time.Second}},
		}},
		"a stage that fails before its clock begins has no duration": {
			before: running(rollout.StageStatus{State: rollout.StageRunning}), after: running(rollout.StageStatus{State: rollout.StageFailed, EndTime: later}), health: bad, failed: true,
			want: rollout.Tally{Stages: map[rollout.StageState]int{rollout.StageFailed: 1}, Verdicts: map[judge.Verdict]int{judge.Fail: 1}},
		},
		"a stage that a gate fails has no verdict": {
			before: running(begun), after: running(failed), failed: true, want: rollout.Tally{Stages: map[rollout.StageState]int{rollout.StageFailed: 1}},
		},
		"a failed stage that stays": {before: running(failed), after: ended(running(failed), rollout.EndRequested)},
		"a run without a verdict is rolled back": {
			before: running(begun), after: ended(running(rollout.StageStatus{State: rollout.StageSkipped, StartTime: noon, EndTime: later}), rollout.EndUndecided), health: undecided,
			want: rollout.Tally{Stages: map[rollout.StageState]int{rollout.StageSkipped: 1}, Verdicts: map[judge.Verdict]int{judge.Undecided: 1}},
		},
		"the next run leaves the stage under way": {
			before: running(begun), after: rollout.State{Run: &rollout.Run{Number: 2, State: rollout.Created}},
			want: rollout.Tally{Stages: map[rollout.StageState]int{rollout.StageSkipped: 1}},
		},
		"a wait for BothBad begins": {before: running(begun), after: waiting(running(begun), rollout.WaitBothBad, later), want: rollout.Tally{
			Verdicts: map[judge.Verdict]int{judge.BothBad: 1},
		}},
		"a wait for BothBad goes on": {before: waiting(running(begun), rollout.WaitBothBad, noon), after: waiting(running(begun), rollout.WaitBothBad, noon)},
		"a wait for data begins": {before: waiting(running(begun), rollout.WaitMinimumTime, noon), after: waiting(running(begun), rollout.WaitData, later), want: rollout.Tally{
			Verdicts: map[judge.Verdict]int{judge.NoData: 1},
		}},
		"proxies acknowledge a rollback": {
			before: waiting(ended(running(failed), rollout.EndFailed), rollout.WaitAcknowledgment, noon), after: ended(running(failed), rollout.EndFailed),
			want: rollout.Tally{RolledBack: true, RollbackDuration: 2 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := rollout.Decision{After: c.after}
			if c.failed {
				d.Events = []rollout.Event{{Name: rollout.StageHasFailed}}
			}
			got := rollout.TallyOf(rollout.Facts{Before: c.before, Health: c.health, Now: noon.Add(2 * time.Minute)}, d)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the tally differs (-want +got):\n%s", diff)
			}
		})
	}
}

// A stage that has failed or passed is told by an Event as well, so both have the same number.
func TestTheTallyAgreesWithTheEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := &life{T: rt, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}
		for range 30 {
			facts := l.draw()
			d := rollout.Decide(facts)
			events := map[rollout.EventName]int{}
			for _, e := range d.Events {
				events[e.Name]++
			}
			got := rollout.TallyOf(facts, d)
			failed, judged := events[rollout.StageHasFailed], 0
			if facts.Health.Verdict == judge.Fail { // or else a gate has failed the stage
				judged = failed
			}
			if got.Stages[rollout.StageFailed] != failed || got.Verdicts[judge.Fail] != judged {
				rt.Fatalf("the tally is %+v, and %d stages failed, %d by a verdict", got, failed, judged)
			}
			if want := events[rollout.StagePassed]; got.Verdicts[judge.Pass]+got.Verdicts[judge.Undecided] < want || got.Verdicts[judge.Pass] > want {
				rt.Fatalf("the tally is %+v, and %d stages passed", got, want)
			}
			facts.Before = d.After
			again := rollout.TallyOf(facts, rollout.Decision{After: d.After})
			if diff := cmp.Diff(rollout.Tally{}, again, cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("no change counts (-want +got):\n%s", diff)
			}
			l.state = d.After
			if rapid.Bool().Draw(rt, "told") {
				l.weight, l.checking = d.Weight, d.Checking
			}
		}
	})
}
