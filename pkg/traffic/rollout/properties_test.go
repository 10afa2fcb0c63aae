// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// life is a release to which anything may happen.
type life struct {
	*rapid.T
	state  rollout.State
	weight traffic.Weight
	// checking says that proxies have the active variation serve the canary.
	checking bool
	now      time.Time
	// revisions of the variations.
	revisions map[string]string
	// answered are the answers of the last look.
	answered []gates.Answer
	// clone is nil unless variation b is one.
	clone *cloneWorld
}

func drawPlan(t *rapid.T) *rollout.Plan {
	if rapid.IntRange(0, 9).Draw(t, "no plan") == 0 {
		return nil
	}
	queries := []gates.Query{{Name: "q", PromQL: "up", Maximum: "1", FailureLimit: rapid.IntRange(1, 2).Draw(t, "limit")}}
	if rapid.Bool().Draw(t, "no query") {
		queries = nil
	}
	p := &rollout.Plan{
		StrategyName: "s", Start: rapid.SampledFrom([]rollout.StartMode{rollout.StartAutomatic, rollout.StartAutomatic, rollout.StartManual}).Draw(t, "start"),
		OnUndecided: rapid.SampledFrom([]rollout.UndecidedPolicy{rollout.UndecidedHold, rollout.UndecidedRollback}).Draw(t, "undecided"),
		Deadlines:   rollout.Deadlines{Deployment: time.Minute, Acknowledgment: time.Minute, Approval: time.Hour, Extension: time.Minute},
		Strategy:    rollout.Strategy{AutoAdvance: rapid.Bool().Draw(t, "auto"), RollbackOnFailure: rapid.Bool().Draw(t, "rolls back"), Interval: 10 * time.Second, Queries: queries},
	}
	if rapid.Bool().Draw(t, "checks") {
		p.CohortCheck = time.Minute
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

// drawGates has some webhooks, and an answer to most questions; some answers come twice.
func (l *life) drawGates(f *rollout.Facts) {
	for _, event := range []gates.Event{gates.BeforeStart, gates.BeforeStage, gates.DuringStage, gates.BeforePromotion, gates.AfterRollback} {
		if rapid.IntRange(0, 2).Draw(l.T, string(event)) == 0 {
			f.Webhooks = append(f.Webhooks, gates.Webhook{Name: string(event), Event: event})
		}
	}
	for _, q := range l.state.Questions(f.Webhooks, f.Now) {
		a := gates.Answer{
			Question: q, Time: f.Now.Add(-time.Duration(rapid.IntRange(0, 30).Draw(l.T, "old")) * time.Second),
			Result: rapid.SampledFrom([]gates.Result{gates.Pass, gates.Pass, gates.Pass, gates.Pass, gates.Wait, gates.NoData, gates.Fail, ""}).Draw(l.T, "result"), Message: "m",
		}
		if n := rapid.IntRange(0, 4).Draw(l.T, "value"); q.Kind == gates.KindQuery && n > 0 {
			a.Value = new(float64(n / 2)) // 0, 1, 1, or 2, of which the last is above the maximum
		}
		if rapid.IntRange(0, 5).Draw(l.T, "answers") > 0 {
			f.Answers = append(f.Answers, a)
		}
	}
	for _, a := range l.answered {
		if rapid.IntRange(0, 3).Draw(l.T, "again") == 0 {
			f.Answers = append(f.Answers, a)
		}
	}
	l.answered = f.Answers
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
		Standing: rollout.Standing{Active: active, Weight: l.weight, Checking: l.checking, Acknowledged: rapid.IntRange(0, 3).Draw(l.T, "acknowledged") > 0},
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
	f.Approval = rollout.Approval{
		Policy: rapid.SampledFrom([]rollout.ApprovalPolicy{rollout.ApprovalAnyone, rollout.ApprovalAnyone, rollout.ApprovalNotAuthor}).Draw(l.T, "policy"),
		Author: rapid.SampledFrom([]string{"", "Ada", "bob"}).Draw(l.T, "author"),
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
	if rapid.Bool().Draw(l.T, "cohort") {
		f.Cohort = rollout.Cohort{Run: run, Ratio: 2, Known: true}
	}
	l.drawGates(&f)
	if l.clone != nil {
		l.clone.draw(l, &f)
	}
	return f
}

// naiveVerdict is the verdict of the gates of an event, by a naive twin of package gates: the twin looks
// at the states that the decision kept.
func naiveVerdict(f rollout.Facts, after rollout.State, run *rollout.Run, event gates.Event, stage int) gates.Result {
	restarts := 0
	for _, s := range run.Stages {
		restarts += s.Restarts
	}
	result := gates.Pass
	look := func(kind gates.Kind, name string) {
		for _, s := range after.Gates {
			if s.Kind == kind && s.Name == name && s.Point == (gates.Point{Run: run.Number, Event: event, Stage: stage, Restart: restarts}) {
				switch {
				case s.Result == gates.Fail:
					result = gates.Fail
				case (s.Result != gates.Pass || f.Now.Sub(s.Time) > 2*time.Minute) && result == gates.Pass:
					result = gates.Wait
				}
				return
			}
		}
		if result == gates.Pass {
			result = gates.Wait
		}
	}
	if event == gates.DuringStage && run.Stages[stage-1].Weight > 0 {
		for _, q := range run.Strategy.Queries {
			look(gates.KindQuery, q.Name)
		}
	}
	for _, w := range f.Webhooks {
		if w.Event == event {
			look(gates.KindWebhook, w.Name)
		}
	}
	return result
}

// checkGates demands the promises of gates: a run goes past no point whose gates do not pass, a failure during
// a stage ends the run or holds it, and missing data ends none.
func (l *life) checkGates(f rollout.Facts, d rollout.Decision) {
	before, after := l.state, d.After
	if before.Run == nil || after.Run == nil || before.Run.Number != after.Run.Number || !before.IsOn() {
		return
	}
	run := before.Run
	i := before.Current() - 1
	fails := slices.ContainsFunc(after.Gates, func(s gates.State) bool { return s.Result == gates.Fail })
	switch {
	case run.State == rollout.Created && after.Run.State == rollout.Deploying && naiveVerdict(f, after, run, gates.BeforeStart, 0) != gates.Pass:
		l.Error("a run starts that a gate holds")
	case after.Run.State == rollout.Promoting && run.State == rollout.Running && naiveVerdict(f, after, after.Run, gates.BeforePromotion, 0) != gates.Pass:
		l.Error("a run is promoted that a gate holds")
	case after.Run.EndReason == rollout.EndGateFailed && !fails:
		l.Errorf("a gate ends the run, and none fails: %+v", after.Gates)
	case i < 0 || run.Stages[i].State != rollout.StageRunning || run.Stages[i].StartTime.IsZero() || after.Run.Stages[i].Restarts != run.Stages[i].Restarts:
	case naiveVerdict(f, after, run, gates.DuringStage, i+1) == gates.Fail && after.Run.Stages[i].State == rollout.StageRunning:
		l.Errorf("stage %d goes on, and a gate fails", i+1)
	case run.Stages[i].PassTime.IsZero() && !after.Run.Stages[i].PassTime.IsZero() && naiveVerdict(f, after, run, gates.DuringStage, i+1) != gates.Pass:
		l.Errorf("stage %d passes, and a gate holds it", i+1)
	}
	if stage := after.Current(); stage > 0 && stage > before.Current() && after.Run.State == rollout.Running && naiveVerdict(f, after, after.Run, gates.BeforeStage, stage) != gates.Pass {
		l.Errorf("stage %d begins, and a gate holds it", stage)
	}
}

// check demands what holds of each decision.
func (l *life) check(f rollout.Facts, d rollout.Decision) {
	before, after := l.state, d.After
	sameRun := before.Run != nil && after.Run != nil && before.Run.Number == after.Run.Number
	wasOn, isOn := before.IsOn(), after.IsOn()
	asked := after.Handled != nil && (before.Handled == nil || *after.Handled != *before.Handled) && after.Handled.Refusal == ""
	passed := f.Health.Verdict == judge.Pass
	switch {
	case sameRun && wasOn && isOn && d.Weight < before.Weight() && after.Run.ReturnTime.IsZero(): // checkReturn has the other case
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

// checkApprovals demands that a run leaves a stage that wants an approval by an approval of the stage as it was
// measured, or by a verb that needs a right of its own.
func (l *life) checkApprovals(d rollout.Decision) {
	before, after := l.state, d.After
	if before.Current() == 0 || before.Run.Number != after.Run.Number {
		return
	}
	var asked rollout.Control
	if h := after.Handled; h != nil && h.Refusal == "" && (before.Handled == nil || *h != *before.Handled) {
		asked = h.Control
	}
	i := before.Current() - 1
	for j := i; j < len(after.Run.Stages); j++ {
		stage := after.Run.Stages[j]
		isLeft := after.Run.State == rollout.Promoting || after.Run.State == rollout.Completed || after.Current() > j+1
		if isLeft && stage.RequireApproval && stage.ApprovedBy == "" && asked.Verb != rollout.VerbPromote && (asked.Verb != rollout.VerbSkip || j > i) {
			l.Errorf("the run leaves stage %d without an approval, by %q", j+1, asked.Verb)
		}
		was := before.Run.Stages[j]
		isAnew := stage.Restarts != was.Restarts || stage.State == rollout.StageFailed && was.State != rollout.StageFailed || after.Run.From != before.Run.From
		if isAnew && stage.ApprovedBy != "" && asked.Verb != rollout.VerbApprove && after.IsOn() {
			l.Errorf("stage %d keeps an approval of another measurement", j+1)
		}
	}
}

// checkAuthors demands that a user whom the policy refuses, by a naive twin of it, has no verb carried out that
// decides in the place of the judge.
func (l *life) checkAuthors(f rollout.Facts, d rollout.Decision) {
	h, run := d.After.Handled, l.state.Run
	if h == nil || l.state.Handled != nil && *h == *l.state.Handled || h.Refusal != "" {
		return
	}
	if run == nil || h.Run != run.Number { // the run has begun in this decision
		run = d.After.Run
	}
	decides := h.Verb == rollout.VerbApprove || h.Verb == rollout.VerbSkip || h.Verb == rollout.VerbPromote && h.Variation == run.Canary
	holds := run.Approval.Policy == rollout.ApprovalNotAuthor || f.Approval.Policy == rollout.ApprovalNotAuthor
	if author := run.Approval.Author; decides && holds && (author == "" || strings.EqualFold(h.RequestedBy, author) || strings.EqualFold(h.RequestedBy, f.Approval.Author)) {
		l.Errorf("%s by %s is carried out, and the author of the run is %q, and that of the release %q", h.Verb, h.RequestedBy, author, f.Approval.Author)
	}
	if run := d.After.Run; l.state.Run != nil && run.Number == l.state.Run.Number && run.Approval != l.state.Run.Approval {
		l.Errorf("the run has the policy %v, and had %v", run.Approval, l.state.Run.Approval)
	}
}

// keep writes a decision into the status, reads the status again, and returns what it keeps. The
// status keeps the whole state, and the same facts twice change nothing.
func keep(t *rapid.T, f rollout.Facts, d rollout.Decision) rollout.State {
	t.Helper()
	var status v1alpha1.ABReleaseStatus
	d.After.Write(&status)
	kept := rollout.StateOf(&status)
	if diff := cmp.Diff(d.After, kept); diff != "" {
		t.Fatalf("the status does not keep the state (-decided +read):\n%s", diff)
	}
	f.Before = kept
	if twice := rollout.Decide(f); len(twice.Events) > 0 || cmp.Diff(kept, twice.After) != "" || cmp.Diff(d.Works, twice.Works) != "" {
		t.Fatalf("the same facts twice change something: %v\n%s%s", twice.Events, cmp.Diff(kept, twice.After), cmp.Diff(d.Works, twice.Works))
	}
	return kept
}

func TestWhateverHappensNoVisitorIsMovedBackButByARollback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}
		if rapid.Bool().Draw(t, "clone") {
			l.clone = newCloneWorld(t)
		}
		for range rapid.IntRange(1, 60).Draw(t, "decisions") {
			f := l.next()
			d := rollout.Decide(f)
			l.check(f, d)
			l.checkGates(f, d)
			l.checkApprovals(d)
			l.checkAuthors(f, d)
			l.checkClone(f, d)
			l.state = keep(t, f, d)
			if rapid.Bool().Draw(t, "told") {
				l.weight, l.checking = d.Weight, d.Checking
			}
		}
	})
}

func TestAReleaseGoesOnlyOnceItsRequestsHaveReturned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}
		for range rapid.IntRange(0, 40).Draw(t, "decisions") {
			d := rollout.Decide(l.draw())
			l.state, l.weight, l.checking = d.After, d.Weight, d.Checking
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
				l.weight, l.checking, active = d.Weight, d.Checking, d.After.Active
			}
		}
	})
}
