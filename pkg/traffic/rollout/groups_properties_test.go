// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// groupsWorld has two Deployments, and an executor that does what it is asked for, sooner or later.
type groupsWorld struct {
	*rapid.T
	state     rollout.State
	now       time.Time
	replicas  map[string]int
	ready     map[string]int
	revisions map[string]string
	answers   map[workID]rollout.WorkAnswer
	// helps says that all goes well from now on, calm that no person does anything and pods stay ready, and
	// meddles that another writer scales groups as well.
	helps, calm, meddles bool
	// meddled says that another writer has scaled a group since the run started.
	meddled bool
	// serves is nil unless the variations have workloads as well.
	serves *serving
}

// total is the number that the run keeps; 0 while it keeps none.
func (w *groupsWorld) total() int {
	if run := w.state.Run; run != nil && run.Division != nil {
		return run.Division.Total
	}
	return 0
}

// live has the executor, kubelets, and people do something.
func (w *groupsWorld) live() {
	for _, work := range w.state.Works {
		id := workID{work.Run, work.Number}
		phase := rollout.WorkSucceeded
		switch {
		case w.helps:
		case w.calm:
			phase = rapid.SampledFrom([]rollout.WorkPhase{rollout.WorkSucceeded, rollout.WorkIsRunning, ""}).Draw(w.T, "phase")
		default:
			phase = rapid.SampledFrom([]rollout.WorkPhase{"", rollout.WorkIsRunning, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkIsRefused}).Draw(w.T, "phase")
		}
		was := w.answers[id].Phase
		if phase == "" || was == rollout.WorkSucceeded || was == rollout.WorkIsRefused || work.Phase == rollout.WorkFailed {
			continue
		}
		w.answers[id] = rollout.WorkAnswer{Run: work.Run, Number: work.Number, Verb: work.Verb, Variation: work.Variation, Replicas: work.Replicas, Phase: phase, Message: "m"}
		if phase == rollout.WorkSucceeded {
			w.replicas[work.Variation] = work.Replicas
		}
	}
	for _, group := range []string{"a", "b"} {
		if w.meddles && !w.helps && rapid.IntRange(0, 19).Draw(w.T, "meddles") == 0 {
			w.replicas[group], w.meddled = rapid.IntRange(0, 9).Draw(w.T, "replicas"), true
		}
		switch before := w.ready[group]; {
		case w.helps:
			w.ready[group] = w.replicas[group]
		case w.calm: // pods become ready later
			w.ready[group] = min(w.replicas[group], before+rapid.IntRange(0, 2).Draw(w.T, "more ready"))
		default:
			w.ready[group] = rapid.IntRange(0, w.replicas[group]).Draw(w.T, "ready")
		}
		if !w.helps && !w.calm && rapid.IntRange(0, 29).Draw(w.T, "deploys") == 0 {
			w.revisions[group] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(w.T, "revision")
		}
	}
}

func (w *groupsWorld) draw() rollout.Facts {
	w.live()
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(w.T, "seconds")) * time.Second)
	f := rollout.Facts{
		Stable: "a", Variations: [2]string{"a", "b"}, Plan: drawPlan(w.T), Before: w.state, Now: w.now, Arms: map[string]rollout.Arm{},
		Groups: &rollout.Groups{Deployments: map[string]string{"a": "worker-a", "b": "worker-b"}},
	}
	if f.Plan != nil {
		f.Plan.CohortCheck = 0
	}
	for _, group := range f.Variations {
		n := w.replicas[group]
		if !w.helps && rapid.IntRange(0, 19).Draw(w.T, "unknown") == 0 {
			continue
		}
		f.Arms[group] = rollout.Arm{Revision: rollout.Revision{Hash: group + w.revisions[group]}, Ready: w.ready[group], Targets: n, Updated: n, Replicas: n}
	}
	run := int64(0)
	if w.state.Run != nil {
		run = w.state.Run.Number
	}
	for number := int64(1); run > 0; number++ {
		a, is := w.answers[workID{run, number}]
		if !is && number > 200 {
			break
		}
		if is {
			f.Works = append(f.Works, a)
		}
	}
	f.Health = rollout.GroupHealthOf(w.state, f.Arms, w.now)
	if w.serves != nil {
		w.serves.draw(w, &f)
	}
	if w.helps {
		for _, q := range w.state.Questions(nil, f.Now) {
			f.Answers = append(f.Answers, gates.Answer{Question: q, Time: f.Now, Result: gates.Pass, Value: new(0.5)})
		}
		return f
	}
	if !w.calm {
		f.Paused, f.Control = rapid.IntRange(0, 9).Draw(w.T, "paused") == 0, drawControl(w.T, run)
	}
	if w.serves == nil && w.state.Current() > 0 && rapid.IntRange(0, 9).Draw(w.T, "fails") == 0 {
		f.Health = rollout.Health{Run: run, Stage: w.state.Current(), Verdict: judge.Fail}
	}
	return f
}

// check demands of each work that both groups together keep what all work needs.
func (w *groupsWorld) check(f rollout.Facts, d rollout.Decision) {
	open := 0
	for _, work := range d.After.Works {
		if work.Phase == rollout.WorkIsPending || work.Phase == rollout.WorkIsRunning {
			open++
		}
	}
	if open > 1 {
		w.Errorf("%d works are under way: %+v", open, d.After.Works)
	}
	before, after := w.state.Run, d.After.Run
	if isNext := before != nil && after != nil && after.Number > before.Number; isNext && len(w.state.Works) > 0 && before.State != rollout.Completed && !w.meddled {
		total := before.Division.Total
		if active, canary := f.Arms[before.Active], f.Arms[before.Canary]; active.Replicas < total || canary.Replicas > 0 {
			w.Errorf("run %d begins, and the groups have %d and %d: run %d had %d", after.Number, active.Replicas, canary.Replicas, before.Number, total)
		}
	}
	for _, work := range newWorks(w.state, d.After) {
		if work.Phase == rollout.WorkIsPending { // one that was dropped in the same look is never told
			w.checkWork(f, d, &work)
		}
	}
}

func (w *groupsWorld) checkWork(f rollout.Facts, d rollout.Decision, work *rollout.Work) {
	run, other := d.After.Run, "a"
	if work.Variation == "a" {
		other = "b"
	}
	total := run.Division.Total
	isReturn := run.State == rollout.RolledBack
	switch {
	case work.Verb != rollout.ScaleClone || work.Replicas > total:
		w.Errorf("a run of %d replicas asks for %+v", total, work)
	case work.Replicas < f.Arms[work.Variation].Replicas && work.Replicas+f.Arms[other].Replicas < total && f.Control == nil:
		w.Errorf("with %d of %s both groups have fewer than %d replicas: %+v", work.Replicas, work.Variation, total, f.Arms)
	case work.Replicas < f.Arms[work.Variation].Replicas && f.Arms[other].Ready < total-work.Replicas && f.Control == nil:
		w.Errorf("%s is scaled down to %d of %d, and of %s %d are ready", work.Variation, work.Replicas, total, other, f.Arms[other].Ready)
	case isReturn && (work.Variation == run.Active && work.Replicas != total || work.Variation == run.Canary && work.Replicas != 0):
		w.Errorf("after the run %+v is asked for", work)
	case !isReturn && f.Paused && work.Replicas > f.Arms[work.Variation].Replicas && w.state.Works == nil:
		w.Errorf("a run that is paused asks for %+v", work)
	}
}

func TestBothGroupsTogetherKeepTheirReplicas(t *testing.T) {
	completed, rolledBack := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &groupsWorld{
			T: t, now: noon, replicas: map[string]int{"a": rapid.IntRange(0, 6).Draw(t, "a"), "b": rapid.IntRange(0, 3).Draw(t, "b")}, ready: map[string]int{},
			revisions: map[string]string{"a": "1", "b": "1"}, answers: map[workID]rollout.WorkAnswer{}, meddles: rapid.Bool().Draw(t, "another writer scales"),
		}
		for range rapid.IntRange(0, 40).Draw(t, "decisions") {
			w.decide(t)
		}
		w.helps = true
		if w.meddled || w.state.Run == nil || w.replicas["a"]+w.replicas["b"] == 0 {
			return
		}
		w.end(t, &completed, &rolledBack)
	})
	if completed == 0 || rolledBack == 0 {
		t.Errorf("%d runs were completed and %d rolled back: too few to prove anything", completed, rolledBack)
	}
}

// end has all go well, and demands that the groups have what the end of the run gives them.
func (w *groupsWorld) end(t *rapid.T, completed, rolledBack *int) {
	for look := range 80 {
		f := w.draw()
		f.Plan = drawPlan(t)
		f.Control = nil
		ask := func(verb rollout.Verb) {
			f.Control = &rollout.Control{Verb: verb, Run: w.state.Run.Number, RequestedBy: "ada", Attempt: int32(look)} //nolint:gosec // few
		}
		switch wait := w.state.Waiting; {
		case wait == nil:
		case wait.Reason == rollout.WaitRefusedWork:
			ask(rollout.VerbRetry)
		case look > 50:
			ask(rollout.VerbRollback)
		case wait.Reason == rollout.WaitApproval:
			ask(rollout.VerbApprove)
		}
		d := rollout.Decide(f)
		if w.serves != nil {
			w.serves.weight, w.serves.active, w.serves.checking = d.Weight, d.After.Active, d.Checking
		}
		w.state = d.After
	}
	run := w.state.Run
	total := run.Division.Total
	active, canary := w.replicas[w.state.Active], w.replicas["a"]+w.replicas["b"]-w.replicas[w.state.Active]
	switch {
	case w.state.IsOn() || total > 0 && run.Division.SettleTime.IsZero():
		t.Errorf("run %d is %s, and waits for %+v: %+v", run.Number, run.State, w.state.Waiting, w.state.Works)
	case total > 0 && len(w.state.Works) > 0 && (active < total || canary != 0):
		t.Errorf("after run %d, which is %s, the active group has %d of %d, and the other one %d: %+v", run.Number, run.State, active, total, canary, w.state.Works)
	case run.State == rollout.Completed:
		*completed++
	default:
		*rolledBack++
	}
}

func (w *groupsWorld) decide(t *rapid.T) {
	f := w.draw()
	d := rollout.Decide(f)
	if w.serves != nil {
		w.serves.check(w, f, d)
	}
	w.check(w.ofGroups(f), d)
	w.state = keep(t, f, d)
	if total := w.total(); total > 0 && len(w.state.Works) > 0 && !w.meddled && w.replicas["a"]+w.replicas["b"] < total {
		t.Fatalf("both groups have %v replicas, and the run began with %d", w.replicas, total)
	}
}

// ofGroups are facts whose arms are the groups.
func (w *groupsWorld) ofGroups(f rollout.Facts) rollout.Facts {
	if w.serves != nil {
		f.Arms = f.Groups.Arms
	}
	return f
}

func TestTheSizesOfGroups(t *testing.T) {
	for name, c := range map[string]struct {
		total          int
		weight         traffic.Weight
		active, canary int32
	}{
		"nothing goes over at 0 %":            {4, 0, 4, 0},
		"a small part is one replica":         {4, 1, 3, 1},
		"a part is rounded":                   {10, 2500, 7, 3},
		"a part is rounded down":              {10, 2400, 8, 2},
		"one replica goes over as a whole":    {1, 100, 0, 1},
		"all replicas go over at 100 %":       {7, traffic.Total, 0, 7},
		"of many replicas a hundredth is few": {100_000, 100, 99_000, 1_000},
	} {
		t.Run(name, func(t *testing.T) {
			s := rollout.State{Run: &rollout.Run{
				State: rollout.Running, Active: "a", Canary: "b", Division: &rollout.Division{Total: c.total},
				Stages: []rollout.StageStatus{{Stage: rollout.Stage{Weight: c.weight}, State: rollout.StageRunning}},
			}}
			var status v1alpha1.RolloutStatus
			rollout.WriteGroups(&status, s, map[string]rollout.Arm{"a": {}, "b": {}}, [2]string{"a", "b"})
			if active, canary := *status.Groups[0].Wanted, *status.Groups[1].Wanted; active != c.active || canary != c.canary {
				t.Errorf("of %d the active group gets %d and the canary %d", c.total, active, canary)
			}
		})
	}
}
