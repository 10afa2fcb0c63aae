// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// serving are the workloads of variations that have groups beside them, and the proxies that divide requests
// between the workloads.
type serving struct {
	// revisions of the workloads, without the groups.
	revisions map[string]string
	// active, weight and checking are what proxies have.
	active   string
	weight   traffic.Weight
	checking bool
	// verdict is that of the judge of requests.
	verdict judge.Verdict
}

// draw has the facts of a release that divides requests as well. The arms of the facts were the groups.
func (s *serving) draw(w *groupsWorld, f *rollout.Facts) {
	f.Groups.Routed, f.Groups.Arms = true, f.Arms
	if w.calm {
		f.Plan = calmPlan()
	}
	f.Arms = map[string]rollout.Arm{}
	f.Standing = rollout.Standing{Active: s.active, Weight: s.weight, Checking: s.checking, Acknowledged: w.helps || !isRare(w.T, "is not acknowledged")}
	for _, variation := range f.Variations {
		arm := rollout.Arm{Revision: rollout.Revision{Hash: "web-" + variation + s.revisions[variation]}, Ready: 8, Targets: 8, Updated: 8}
		if !w.helps {
			arm.Ready = rapid.SampledFrom([]int{8, 8, 8, 5, 4, 0}).Draw(w.T, "endpoints")
		}
		if !w.helps && !w.calm && isRare(w.T, "releases") {
			s.revisions[variation] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(w.T, "revision")
		}
		f.Arms[variation] = arm
	}
	if group, is := f.Groups.Arms["b"]; is && !w.helps && isRare(w.T, "restarts") {
		group.Restarted = 1
		f.Groups.Arms["b"] = group
	}
	f.JoinGroups()
	if s.verdict = judge.Pass; !w.helps {
		if isRare(w.T, "the judge does not pass") {
			s.verdict = rapid.SampledFrom([]judge.Verdict{judge.Fail, judge.BothBad, judge.Undecided, judge.NoData, ""}).Draw(w.T, "verdict")
		}
	}
	health := rollout.Health{Verdict: s.verdict, Stage: w.state.Current()}
	if w.state.Run != nil {
		health.Run, f.Cohort = w.state.Run.Number, rollout.Cohort{Run: w.state.Run.Number, Ratio: 2, Known: true}
	}
	f.Health = f.JoinHealth(health)
}

// calmPlan is a plan whose runs need no person.
func calmPlan() *rollout.Plan {
	p := &rollout.Plan{
		StrategyName: "s", Start: rollout.StartAutomatic, OnUndecided: rollout.UndecidedHold,
		Deadlines: rollout.Deadlines{Deployment: time.Hour, Acknowledgment: time.Hour, Approval: time.Hour, Extension: time.Hour},
		Strategy:  rollout.Strategy{AutoAdvance: true, RollbackOnFailure: true, Interval: 10 * time.Second},
	}
	for _, weight := range []traffic.Weight{1000, 5000, traffic.Total} {
		p.Strategy.Stages = append(p.Strategy.Stages, rollout.Stage{Weight: weight, Duration: 10 * time.Second})
	}
	return p
}

// isRare is true now and then. Package rapid draws small numbers more often than large ones.
func isRare(t *rapid.T, what string) bool { return rapid.IntRange(0, 39).Draw(t, what) == 29 }

// check demands of each decision that requests and replicas go together.
func (s *serving) check(w *groupsWorld, f rollout.Facts, d rollout.Decision) {
	before, after := w.state, d.After
	defer func() { s.hear(w, d) }()
	if after.Run == nil {
		return
	}
	isSame := before.Run != nil && before.Run.Number == after.Run.Number
	switch was := before.Weight(); {
	case !isSame:
	case d.Weight > was:
		s.checkRise(w, f, d)
	case d.Weight < was && after.Run.State != rollout.RolledBack && after.Run.State != rollout.Completed:
		w.Errorf("the weight goes from %d to %d, and the run is %s", was, d.Weight, after.Run.State)
	}
	if after.Run.State == rollout.RolledBack && d.Weight != 0 {
		w.Errorf("the run is rolled back, and the weight is %d", d.Weight)
	}
	if isSame {
		s.checkStage(w, f, d)
	}
	for _, work := range newWorks(before, after) {
		isSettled := f.Standing.Active == after.Run.Active && f.Standing.Acknowledged && !f.Standing.Checking
		if after.IsOn() && after.Run.State != rollout.Deploying && work.Variation == after.Run.Active && work.Phase == rollout.WorkIsPending && f.Control == nil &&
			(!isSettled || f.Standing.Weight != d.Weight) {
			w.Errorf("the active group shrinks by %+v while proxies have %+v, wanted is %d", work, f.Standing, d.Weight)
		}
	}
}

// hear has proxies be told, or not.
func (s *serving) hear(w *groupsWorld, d rollout.Decision) {
	if !isRare(w.T, "is not told") {
		s.weight, s.active, s.checking = d.Weight, d.After.Active, d.Checking
	}
}

// checkRise demands that both the endpoints and the group of the canary are enough for a weight that rises, by naive
// twins of the sizes.
func (s *serving) checkRise(w *groupsWorld, f rollout.Facts, d rollout.Decision) {
	run := d.After.Run
	if ready := f.Arms[run.Canary].Ready; ready*int(traffic.Total) < int(d.Weight)*run.Capacity {
		w.Errorf("%d endpoints of %d get %d", ready, run.Capacity, d.Weight)
	}
	if group := f.Groups.Arms[run.Canary]; group.Ready < naiveSize(run.Division.Total, d.Weight) || run.Division.Total == 0 {
		w.Errorf("the weight is %d of %d replicas, and %d of the group are ready", d.Weight, run.Division.Total, group.Ready)
	}
}

// checkStage demands that the clock of a stage begins when both have its weight, that either failure fails the
// stage, and that it passes by both.
func (s *serving) checkStage(w *groupsWorld, f rollout.Facts, d rollout.Decision) {
	i := w.state.Current() - 1
	if i < 0 {
		return
	}
	was, is := w.state.Run.Stages[i], d.After.Run.Stages[i]
	run := d.After.Run
	group := f.Groups.Arms[w.state.Run.Canary]
	if was.StartTime.IsZero() && !is.StartTime.IsZero() {
		s.checkStart(w, f, run, &is)
	}
	failed := s.verdict == judge.Fail || group.Restarted > 0 && group.Revision.Hash != ""
	if failed && was.State == rollout.StageRunning && is.State == rollout.StageRunning && f.Control == nil {
		w.Errorf("stage %d goes on, with %s of the judge and %d restarts", i+1, s.verdict, group.Restarted)
	}
	passes := (s.verdict == judge.Pass || is.Weight == 0) && group.Restarted == 0 && group.Revision.Hash != ""
	if was.PassTime.IsZero() && !is.PassTime.IsZero() && !passes {
		w.Errorf("stage %d passes by %q, with %s of the judge and %+v", i+1, is.Message, s.verdict, group)
	}
}

// checkStart demands that proxies have the weight of a stage whose clock starts, and that each group has its part.
func (s *serving) checkStart(w *groupsWorld, f rollout.Facts, run *rollout.Run, stage *rollout.StageStatus) {
	canary := naiveSize(run.Division.Total, stage.Weight)
	active := f.Groups.Arms[run.Active]
	if f.Standing.Weight != stage.Weight || !f.Standing.Acknowledged || active.Replicas > run.Division.Total-canary || f.Groups.Arms[run.Canary].Replicas < canary {
		w.Errorf("the clock of a stage of %d starts with %+v, and the groups have %+v", stage.Weight, f.Standing, f.Groups.Arms)
	}
}

// naiveSize is the part of so many replicas that is nearest to a weight, and one at least of a weight above 0.
func naiveSize(total int, weight traffic.Weight) int {
	if weight == 0 {
		return 0
	}
	size := 1
	for n := 1; n <= total; n++ {
		if 2*n*int(traffic.Total) <= 2*int(weight)*total+int(traffic.Total) { // n is at most half above the part
			size = n
		}
	}
	return size
}

func TestRequestsAndReplicasGoTogether(t *testing.T) {
	completed, rolledBack := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &groupsWorld{
			T: t, now: noon, replicas: map[string]int{"a": rapid.IntRange(1, 6).Draw(t, "a"), "b": rapid.IntRange(0, 3).Draw(t, "b")}, ready: map[string]int{},
			revisions: map[string]string{"a": "1", "b": "1"}, answers: map[workID]rollout.WorkAnswer{}, meddles: rapid.Bool().Draw(t, "another writer scales"),
			serves: &serving{revisions: map[string]string{"a": "1", "b": "1"}, active: "a"},
		}
		w.calm = !w.meddles && rapid.SampledFrom([]bool{true, true, false}).Draw(t, "no person does anything")
		for range rapid.SampledFrom([]int{50, 30, 10, 0}).Draw(t, "decisions") {
			w.decide(t)
		}
		w.helps = true
		if w.meddled || w.state.Run == nil {
			return
		}
		w.end(t, &completed, &rolledBack)
		if w.serves.active != w.state.Active || w.serves.weight != 0 {
			t.Errorf("proxies have %+v, and active is %s", w.serves, w.state.Active)
		}
	})
	if completed == 0 || rolledBack == 0 {
		t.Errorf("%d runs were completed and %d rolled back: too few to prove anything", completed, rolledBack)
	}
}
