// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// workID is a work for all times.
type workID struct{ run, number int64 }

// cloneWorld has variation b be made from variation a by an executor to which anything may happen.
type cloneWorld struct {
	// base and image are the pod template of a, and change is the image that the spec asks for.
	base, image, change string
	// size and template are those of the Deployment of b.
	size     int
	template string
	// made is the change that it was made from, and queues says that another change waits for the end of a run.
	made   string
	queues bool
	// answers of the executor, and all works that were decided.
	answers map[workID]rollout.WorkAnswer
	asked   map[workID]rollout.Work
	// helps says that all goes well from now on, and kind that most goes well, so that runs go far.
	helps, kind bool
}

func newCloneWorld(t *rapid.T) *cloneWorld {
	return &cloneWorld{queues: rapid.Bool().Draw(t, "queues"), kind: rapid.IntRange(0, 3).Draw(t, "is kind") > 0, base: "1", image: "v0", change: "v1", answers: map[workID]rollout.WorkAnswer{}, asked: map[workID]rollout.Work{}}
}

func (c *cloneWorld) hash() string   { return "a " + c.base + " " + c.image }
func (c *cloneWorld) wanted() string { return "b " + c.base + " " + c.change }

// edit changes the world as people do.
func (c *cloneWorld) edit(t *rapid.T) {
	if c.kind && rapid.IntRange(0, 4).Draw(t, "edits") > 0 {
		return
	}
	if rapid.IntRange(0, 29).Draw(t, "base") == 0 {
		c.base = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "base of a")
	}
	if rapid.IntRange(0, 29).Draw(t, "image") == 0 {
		c.image = rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "image of a")
	}
	if rapid.IntRange(0, 29).Draw(t, "change") == 0 {
		c.change = rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "change of b")
	}
}

// work has the executor carry out what was decided before, or leave it.
func (c *cloneWorld) work(t *rapid.T, works []rollout.Work) {
	for _, w := range works {
		id := workID{w.Run, w.Number}
		if w.Phase == rollout.WorkFailed { // the leader has dropped it, and the executor refuses what an ended run asked for
			continue
		}
		phase := rollout.WorkSucceeded
		if isDone := c.helps || c.kind && rapid.IntRange(0, 2).Draw(t, "does") > 0; !isDone {
			phase = rapid.SampledFrom([]rollout.WorkPhase{
				"", rollout.WorkIsPending, rollout.WorkIsRunning, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkIsRefused, rollout.WorkFailed, "Later",
			}).Draw(t, "phase")
		}
		if was := c.answers[id].Phase; phase == "" || was == rollout.WorkSucceeded || was == rollout.WorkIsRefused || was == rollout.WorkFailed {
			continue
		}
		if phase == rollout.WorkSucceeded && w.ExpectedHash != "" && w.ExpectedHash != c.hash() {
			phase = rollout.WorkIsRefused
		}
		c.answers[id] = rollout.WorkAnswer{Run: w.Run, Number: w.Number, Phase: phase, Message: "m"}
		if phase == rollout.WorkSucceeded {
			c.carryOut(w)
		}
	}
}

func (c *cloneWorld) carryOut(w rollout.Work) {
	switch w.Verb {
	case rollout.CreateClone:
		c.size, c.template, c.made = w.Replicas, c.wanted(), c.change
	case rollout.ScaleClone:
		c.size = w.Replicas
	case rollout.ChangeBaseline:
		if c.image = c.change; c.queues {
			c.image = c.made
		}
	case rollout.HoldMinimum: // hold_properties_test.go has these
	}
}

// next draws a look.
func (l *life) next() rollout.Facts {
	if l.clone != nil && l.clone.kind && rapid.IntRange(0, 3).Draw(l.T, "kind") > 0 {
		return l.drawHelpful(0)
	}
	return l.draw()
}

func (c *cloneWorld) draw(l *life, f *rollout.Facts) {
	if !c.helps {
		c.edit(l.T)
	}
	c.work(l.T, l.state.Works)
	for id, a := range c.answers {
		if l.state.Run != nil && id.run == l.state.Run.Number {
			f.Works = append(f.Works, a)
		}
	}
	f.Clone = &rollout.Clone{Variation: "b", Deployment: "web-b", Baseline: "web", MinReplicas: 1, Hash: c.change, Changed: c.image == c.change}
	if f.Plan != nil {
		if c.queues {
			f.Plan.Supersede = rollout.SupersedeQueue
		}
		f.Plan.Promotion = rapid.SampledFrom([]rollout.Promotion{rollout.UpdateBaseline, rollout.UpdateBaseline, rollout.AwaitBaseline}).Draw(l.T, "promotion")
	}
	if a, is := f.Arms["a"]; is {
		a.Revision, a.Replicas = rollout.Revision{Hash: c.hash()}, 4
		a.Targets = max(a.Targets, a.Ready)
		f.Arms["a"] = a
	}
	if b, is := f.Arms["b"]; is {
		b.Revision, b.Targets = rollout.Revision{Hash: c.wanted()}, c.size
		b.Ready, b.Updated = min(b.Ready, c.size), c.size
		f.Kept = c.kept(b)
		if c.template != c.wanted() {
			b.Ready, b.Updated = 0, 0
		}
		f.Arms["b"] = b
	}
}

// kept is what the clone was made from, with the pods that there are.
func (c *cloneWorld) kept(b rollout.Arm) *rollout.Kept {
	if c.made == "" {
		return nil
	}
	b.Revision = rollout.Revision{Hash: "b " + c.base + " " + c.made}
	if c.template != b.Revision.Hash {
		b.Ready, b.Updated = 0, 0
	}
	return &rollout.Kept{Clone: rollout.Clone{Variation: "b", Deployment: "web-b", Baseline: "web", MinReplicas: 1, Hash: c.made, Changed: c.image == c.made}, Arm: b}
}

// goesOnWith are the change and the canary that a run goes on with.
func goesOnWith(f rollout.Facts, run *rollout.Run) (rollout.Clone, rollout.Arm) {
	if f.Kept != nil && f.Plan != nil && f.Plan.Supersede == rollout.SupersedeQueue && f.Kept.Clone.Hash == run.Change {
		return f.Kept.Clone, f.Kept.Arm
	}
	return *f.Clone, f.Arms["b"]
}

// checkQueue demands that no other change of the spec ends a run that has its clone, and that a run has the change
// of the spec when it begins.
func (l *life) checkQueue(f rollout.Facts, d rollout.Decision) {
	before, after := l.state.Run, d.After.Run
	if !l.clone.queues || f.Kept == nil || f.Plan == nil || f.Deletion != nil {
		return
	}
	if after != nil && (before == nil || before.Number < after.Number) && after.Change != f.Clone.Hash {
		l.Errorf("run %d begins with the change %s, and the spec has %s", after.Number, after.Change, f.Clone.Hash)
	}
	isMade := before != nil && l.state.IsOn() && f.Kept.Clone.Hash == before.Change && f.Kept.Arm.Revision.Is(before.To) &&
		slices.ContainsFunc(l.state.Works, func(w rollout.Work) bool { return w.Verb == rollout.CreateClone && w.Phase == rollout.WorkSucceeded })
	for _, e := range d.Events {
		if isMade && e.Run == before.Number && strings.Contains(e.Message, "has another revision") && e.Name == rollout.RunRolledBack {
			l.Errorf("run %d ends with its change in place: %s", before.Number, e.Message)
		}
	}
}

// newWorks are those that a decision has added.
func newWorks(before, after rollout.State) (added []rollout.Work) {
	for _, w := range after.Works {
		isOld := false
		for _, b := range before.Works {
			isOld = isOld || b.Run == w.Run && b.Number == w.Number
		}
		if !isOld {
			added = append(added, w)
		}
	}
	return added
}

// checkClone demands the promises about works and about the return of requests.
func (l *life) checkClone(f rollout.Facts, d rollout.Decision) {
	if l.clone == nil {
		if len(d.After.Works) > 0 || d.After.Run != nil && !d.After.Run.ReturnTime.IsZero() {
			l.Errorf("a canary that is no clone asks for %v", d.After.Works)
		}
		return
	}
	if d.After.Active != "a" {
		l.Errorf("%s is the active variation: a clone never is", d.After.Active)
	}
	l.checkWorks(f, d)
	l.checkQueue(f, d)
	l.checkReturn(f, d)
	l.checkRaise(f, d)
}

func (l *life) checkWorks(f rollout.Facts, d rollout.Decision) {
	before, after := l.state, d.After
	open := 0
	for _, w := range after.Works {
		switch w.Phase {
		case rollout.WorkIsPending, rollout.WorkIsRunning:
			open++
		case rollout.WorkSucceeded, rollout.WorkIsRefused, rollout.WorkFailed:
		default:
			l.Errorf("work %d is %q", w.Number, w.Phase)
		}
		bare := w
		bare.Phase, bare.Message = "", ""
		if was, is := l.clone.asked[workID{w.Run, w.Number}]; is && was != bare {
			l.Errorf("number %d of run %d is %+v, and was %+v", w.Number, w.Run, bare, was)
		}
		l.clone.asked[workID{w.Run, w.Number}] = bare
	}
	if open > 1 {
		l.Errorf("%d works are under way", open)
	}
	for _, w := range d.Works {
		if !after.IsOn() && (w.Verb != rollout.ScaleClone || w.Replicas > 0) {
			l.Errorf("work %d, %s to %d, is asked for, and the run has ended", w.Number, w.Verb, w.Replicas)
		}
		if _, is := l.clone.answers[workID{w.Run, w.Number}]; is {
			l.Errorf("work %d is asked for, and the executor has it", w.Number)
		}
	}
	for _, w := range newWorks(before, after) {
		l.checkWork(f, d, w)
	}
}

// checkWork demands of a new work that it is safe.
func (l *life) checkWork(f rollout.Facts, d rollout.Decision, w rollout.Work) {
	run := d.After.Run
	hasNone := f.Standing.Weight == 0 && f.Standing.Acknowledged && d.Weight == 0
	switch w.Verb {
	case rollout.ScaleClone:
		if w.Replicas == 0 && !hasNone {
			l.Errorf("the clone is scaled to 0, and proxies have %+v", f.Standing)
		}
		if w.Replicas < l.clone.size && !hasNone {
			l.Errorf("the clone shrinks from %d to %d, and proxies have %+v", l.clone.size, w.Replicas, f.Standing)
		}
	case rollout.CreateClone:
		if !hasNone || f.Paused {
			l.Errorf("the clone is made anew, and proxies have %+v, paused %v", f.Standing, f.Paused)
		}
	case rollout.ChangeBaseline:
		if run.State != rollout.Promoting || f.Standing.Weight != traffic.Total || !f.Standing.Acknowledged || w.ExpectedHash != run.From.Hash || run.Promotion != rollout.UpdateBaseline && f.Control == nil {
			l.Errorf("the baseline is changed by %+v in %+v", w, run)
		}
	default:
		l.Errorf("%q is no verb", w.Verb)
	}
}

// checkReturn demands that requests leave a run that goes on only for a baseline that can take them with the
// change.
func (l *life) checkReturn(f rollout.Facts, d rollout.Decision) {
	before, after := l.state, d.After
	if before.Run == nil || after.Run == nil || before.Run.Number != after.Run.Number || !before.IsOn() {
		return
	}
	a, run := f.Arms["a"], after.Run
	change, _ := goesOnWith(f, run)
	hasChange := change.Changed && change.Hash == run.Change || a.Revision.Hash == run.Baseline.Hash
	switch {
	case before.Run.ReturnTime.IsZero() && !run.ReturnTime.IsZero() && (!hasChange || a.Ready < run.Capacity || a.Updated < run.Capacity || f.Paused || before.Run.State == rollout.Promoting && !f.Standing.Acknowledged):
		l.Errorf("requests return to %+v of %d, changed %v", a, run.Capacity, hasChange)
	case after.Run.State == rollout.Completed && (run.ReturnTime.IsZero() || d.Weight != 0 || before.Run.State != rollout.Promoting):
		l.Errorf("a run is completed with %d at the clone: %+v", d.Weight, run)
	case after.Run.State == rollout.RolledBack && d.Weight != 0:
		l.Errorf("a run is rolled back with %d at the clone", d.Weight)
	}
}

// checkRaise demands that the endpoints of the clone carry what it is given.
func (l *life) checkRaise(f rollout.Facts, d rollout.Decision) {
	if d.Weight <= l.state.Weight() || d.After.Run == nil {
		return
	}
	_, b := goesOnWith(f, d.After.Run)
	capacity := d.After.Run.Capacity
	if b.Ready < 1 || b.Ready*int(traffic.Total) < int(d.Weight)*capacity {
		l.Errorf("the weight rises to %d of %d endpoints, and the clone has %+v", d.Weight, capacity, b)
	}
}

// A world that helps ends each run, and no clone is left without requests, whatever happened before.
func TestWhateverHappenedAHelpfulWorldEndsTheRunAndTheClone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}, clone: newCloneWorld(t)}
		for range rapid.IntRange(0, 40).Draw(t, "decisions") {
			f := l.next()
			d := rollout.Decide(f)
			l.checkClone(f, d)
			if l.state = d.After; rapid.Bool().Draw(t, "told") {
				l.weight, l.checking = d.Weight, d.Checking
			}
		}
		l.clone.helps = true
		for look := range 120 {
			d := rollout.Decide(l.drawHelpful(look))
			l.state, l.weight, l.checking = d.After, d.Weight, d.Checking
		}
		if l.state.IsOn() {
			t.Errorf("run %d is %s, and waits for %+v: %+v", l.state.Run.Number, l.state.Run.State, l.state.Waiting, l.state.Works)
		}
		n := len(l.state.Works)
		if l.clone.size > 0 && (n == 0 || l.state.Works[n-1].Phase == rollout.WorkSucceeded) {
			t.Errorf("the clone has %d pods, and the works are %+v", l.clone.size, l.state.Works)
		}
	})
}

// drawHelpful draws facts that let the run go on; late, a person rolls it back.
func (l *life) drawHelpful(look int) rollout.Facts {
	f := l.draw()
	f.Now = l.now.Add(2 * time.Minute)
	l.now = f.Now
	f.Paused, f.Control, f.Webhooks, f.Deletion = false, nil, nil, nil
	f.Standing = rollout.Standing{Active: "a", Weight: l.weight, Checking: l.checking, Acknowledged: true}
	run, number := l.state.Run, int64(0)
	if run != nil {
		number = run.Number
		for _, q := range l.state.Questions(nil, f.Now) {
			f.Answers = append(f.Answers, gates.Answer{Question: q, Time: f.Now, Result: gates.Pass, Value: new(0.5)})
		}
	}
	f.Health = rollout.Health{Run: number, Stage: l.state.Current(), Verdict: judge.Pass}
	capacity := 4
	if run != nil {
		capacity = max(capacity, run.Capacity)
	}
	f.Arms["a"] = rollout.Arm{Revision: rollout.Revision{Hash: l.clone.hash()}, Ready: capacity, Targets: capacity, Updated: capacity, Replicas: capacity}
	b := rollout.Arm{Revision: rollout.Revision{Hash: l.clone.wanted()}, Targets: l.clone.size}
	if l.clone.template == l.clone.wanted() {
		b.Ready, b.Updated = l.clone.size, l.clone.size
	}
	f.Arms["b"], f.Kept = b, l.clone.kept(rollout.Arm{Ready: l.clone.size, Targets: l.clone.size, Updated: l.clone.size})
	switch {
	case run == nil || !l.state.IsOn():
	case look > 60:
		f.Control = &rollout.Control{Verb: rollout.VerbRollback, Run: number, RequestedBy: "ada", Reason: string(rune('a' + look%26))}
	case l.state.Waiting != nil && l.state.Waiting.Reason == rollout.WaitApproval:
		f.Control = &rollout.Control{Verb: rollout.VerbApprove, Run: number, RequestedBy: "ada"}
	}
	return f
}
