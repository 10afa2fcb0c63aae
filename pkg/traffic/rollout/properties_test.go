// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// life is a release to which anything may happen.
type life struct {
	*rapid.T
	state  rollout.State
	weight traffic.Weight
	now    time.Time
	// revisions of the variations.
	revisions map[string]string
}

func drawPlan(t *rapid.T) *rollout.Plan {
	if rapid.IntRange(0, 9).Draw(t, "no plan") == 0 {
		return nil
	}
	p := &rollout.Plan{
		StrategyName: "s", Start: rapid.SampledFrom([]rollout.StartMode{rollout.StartAutomatic, rollout.StartAutomatic, rollout.StartManual}).Draw(t, "start"),
		OnUndecided: rapid.SampledFrom([]rollout.UndecidedPolicy{rollout.UndecidedHold, rollout.UndecidedRollback}).Draw(t, "undecided"),
		Deadlines:   rollout.Deadlines{Deployment: time.Minute, Acknowledgment: time.Minute, Approval: time.Hour, Extension: time.Minute},
		Strategy:    rollout.Strategy{AutoAdvance: rapid.Bool().Draw(t, "auto"), RollbackOnFailure: rapid.Bool().Draw(t, "rolls back"), Interval: 10 * time.Second},
	}
	for _, weight := range []traffic.Weight{0, 1000, 5000, traffic.Total} {
		if rapid.Bool().Draw(t, "stage") || weight == traffic.Total {
			p.Strategy.Stages = append(p.Strategy.Stages, rollout.Stage{Weight: weight, Duration: time.Minute, RequireApproval: rapid.IntRange(0, 3).Draw(t, "approval") == 0})
		}
	}
	return p
}

func drawControl(t *rapid.T, run int64) *rollout.Control {
	if rapid.IntRange(0, 2).Draw(t, "asks") > 0 {
		return nil
	}
	return &rollout.Control{
		Verb: rapid.SampledFrom([]rollout.Verb{
			rollout.VerbStart, rollout.VerbAdvance, rollout.VerbApprove, rollout.VerbSkip, rollout.VerbPromote, rollout.VerbRollback, rollout.VerbRetry, "Jump",
		}).Draw(t, "verb"),
		Run: run + int64(rapid.IntRange(-1, 1).Draw(t, "run")), Stage: rapid.IntRange(0, 5).Draw(t, "stage"),
		Variation: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "variation"), RequestedBy: rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "by"),
	}
}

func (l *life) draw() rollout.Facts {
	active := l.state.Active
	if active == "" {
		active = "a"
	}
	l.now = l.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(l.T, "seconds")) * time.Second)
	f := rollout.Facts{
		Stable: "a", Variations: [2]string{"a", "b"}, Plan: drawPlan(l.T), Paused: rapid.IntRange(0, 5).Draw(l.T, "paused") == 0, Before: l.state, Now: l.now,
		Arms:     map[string]rollout.Arm{},
		Standing: rollout.Standing{Active: active, Weight: l.weight, Acknowledged: rapid.IntRange(0, 3).Draw(l.T, "acknowledged") > 0},
	}
	for _, variation := range f.Variations {
		if rapid.IntRange(0, 19).Draw(l.T, "unknown") == 0 {
			continue
		}
		n := rapid.SampledFrom([]int{4, 4, 4, 4, 4, 4, 3, 0}).Draw(l.T, "ready")
		if rapid.IntRange(0, 29).Draw(l.T, "deploys") == 0 {
			l.revisions[variation] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(l.T, "revision")
		}
		f.Arms[variation] = rollout.Arm{Revision: rollout.Revision{Hash: variation + l.revisions[variation]}, Ready: n, Targets: 4, Updated: rapid.SampledFrom([]int{4, 4, 4, 1}).Draw(l.T, "updated")}
	}
	run := int64(0)
	if l.state.Run != nil {
		run = l.state.Run.Number
	}
	f.Control = drawControl(l.T, run)
	f.Health = rollout.Health{
		Run: run, Stage: l.state.Current(), ClockStopped: rapid.IntRange(0, 5).Draw(l.T, "stopped") == 0,
		Verdict: rapid.SampledFrom([]judge.Verdict{"", judge.NoData, judge.Undecided, judge.Pass, judge.Pass, judge.BothBad, judge.Fail}).Draw(l.T, "verdict"),
	}
	return f
}

// check demands what holds of each decision.
func (l *life) check(f rollout.Facts, d rollout.Decision) {
	before, after := l.state, d.After
	sameRun := before.Run != nil && after.Run != nil && before.Run.Number == after.Run.Number
	wasOn, isOn := before.IsOn(), after.IsOn()
	asked := after.Handled != nil && (before.Handled == nil || *after.Handled != *before.Handled) && after.Handled.Refusal == ""
	passed := f.Health.Verdict == judge.Pass
	switch {
	case sameRun && wasOn && isOn && d.Weight < before.Weight():
		l.Errorf("the weight of a run that goes on falls from %d to %d: visitors are moved back", before.Weight(), d.Weight)
	case d.Weight > before.Weight() && sameRun && f.Paused:
		l.Errorf("the weight rises to %d in a pause", d.Weight)
	case d.Weight > before.Weight() && sameRun && !f.Standing.Acknowledged && !asked:
		l.Errorf("the weight rises to %d, and proxies have not acknowledged the weight before", d.Weight)
	case d.Weight > before.Weight() && sameRun && before.Run.State == rollout.Running && before.Weight() > 0 && !asked && !passed && before.Run.Stages[before.Current()-1].PassTime.IsZero():
		l.Errorf("the weight rises to %d with the verdict %q", d.Weight, f.Health.Verdict)
	case sameRun && before.Current() > 0 && f.Health.Verdict == judge.Fail && before.Run.Strategy.RollbackOnFailure && isOn && !asked && before.Run.Stages[before.Current()-1].State == rollout.StageRunning:
		l.Error("a run whose stage failed goes on")
	case after.Active != before.Active && before.Active != "" && after.Run.State != rollout.Completed:
		l.Errorf("%s is the active variation, and the run is %s", after.Active, after.Run.State)
	}
	if isOn && after.Waiting == nil {
		l.Errorf("run %d is %s and waits for nothing", after.Run.Number, after.Run.State)
	}
	for i := 1; i < len(after.History); i++ {
		if after.History[i].Number != after.History[i-1].Number+1 {
			l.Errorf("line %d of the history follows line %d", after.History[i].Number, after.History[i-1].Number)
		}
	}
}

func TestWhateverHappensNoVisitorIsMovedBackButByARollback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}
		for range rapid.IntRange(1, 60).Draw(t, "decisions") {
			f := l.draw()
			d := rollout.Decide(f)
			l.check(f, d)
			var status v1alpha1.ABReleaseStatus
			d.After.Write(&status)
			kept := rollout.StateOf(&status)
			if diff := cmp.Diff(d.After, kept); diff != "" {
				t.Fatalf("the status does not keep the state (-decided +read):\n%s", diff)
			}
			f.Before = kept
			if twice := rollout.Decide(f); len(twice.Events) > 0 || cmp.Diff(kept, twice.After) != "" {
				t.Fatalf("the same facts twice change something: %v\n%s", twice.Events, cmp.Diff(kept, twice.After))
			}
			l.state = kept
			if rapid.Bool().Draw(t, "told") {
				l.weight = d.Weight
			}
		}
	})
}

func TestAReleaseGoesOnlyOnceItsRequestsHaveReturned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}
		for range rapid.IntRange(0, 40).Draw(t, "decisions") {
			d := rollout.Decide(l.draw())
			l.state, l.weight = d.After, d.Weight
		}
		active := l.state.Active // in what proxies are told
		for range rapid.IntRange(1, 12).Draw(t, "looks") {
			f := l.draw()
			f.Standing.Active = active
			f.Deletion = &rollout.Deletion{To: rapid.SampledFrom([]string{"a", "a", "b", ""}).Draw(t, "to"), Ready: rapid.IntRange(0, 4).Draw(t, "ready"), Wants: 4}
			d := rollout.Decide(f)
			to := f.Deletion.To
			switch {
			case d.After.IsOn() || d.Weight != 0:
				t.Errorf("a release that is deleted has %d in a run that is %s", d.Weight, d.After.Run.State)
			case d.Returned && to != "" && d.After.Run != nil && (f.Standing.Active != to || f.Standing.Weight != 0 || !f.Standing.Acknowledged):
				t.Errorf("the release goes, and proxies have %+v, not all at %s", f.Standing, to)
			case l.state.Active != "" && d.After.Active != l.state.Active && (d.After.Active != to || f.Deletion.Ready < f.Deletion.Wants):
				t.Errorf("requests go to %s, which has %d of %d pods, and the Service selects %q", d.After.Active, f.Deletion.Ready, f.Deletion.Wants, to)
			case !d.Returned && d.After.Waiting == nil:
				t.Errorf("the release waits for nothing")
			}
			l.state = d.After
			if rapid.Bool().Draw(t, "told") {
				l.weight, active = d.Weight, d.After.Active
			}
		}
	})
}
