// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// A hundred runs, which is the default, show little here.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("5000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Two executors that both believe to be the only one, of which each may sleep
// between deciding and doing, or die; messages that are lost, or late; people
// who change the targets, cancel, pause and resume. Whatever they do, no promise
// is broken; and when they stop, the plan ends.
func TestNothingIsWrittenTwiceWhateverDies(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		for range rapid.IntRange(0, 120).Draw(t, "acts") {
			s.act()
			if s.w.broken != "" {
				t.Fatal(s.w.broken)
			}
		}
		s.w.settle(t, s.executors)
		for i := range s.w.plan.Status.Steps {
			step := &s.w.plan.Status.Steps[i]
			seen[string(step.State)+" "+string(step.Reason)]++
			if s.w.plan.Spec.Plan.Targets[i].Action == v1alpha1.ActionQuarantine {
				seen["quarantine "+string(step.State)]++
			}
			if step.Result != nil {
				seen["result "+string(step.Result.Origin)]++
			}
			if step.Attempts > 0 {
				seen["attempts"]++
			}
			if step.Standby != nil {
				seen["standby "+string(step.State)]++
			}
		}
		seen[string(s.w.plan.Status.Phase)]++
	})
	// A simulation in which nothing happens shows nothing. Ends that are too rare
	// to be sure of are in TestEndsThatNeedATimedBlow.
	for _, end := range []string{
		"Verified ", "Skipped NotAllowed", "Skipped TargetMoved", "Skipped AlreadyDesired", "Skipped TargetReplaced", "Skipped Stopped", "Skipped RevisionDamaged",
		"standby Verified",
		"quarantine Verified", "quarantine Skipped", "quarantine Failed",
		"Failed TargetMoved", "result Response", "result Recovered", "attempts",
		"Succeeded", "Failed", "Canceled", "Superseded", "Skipped",
	} {
		if seen[end] == 0 {
			t.Errorf("it never ended as %q: %v", end, seen)
		}
	}
}

// simulation is one run. Only some disturbances happen in each: with all of them
// at once, no plan would ever get far.
type simulation struct {
	*rapid.T
	w         *world
	executors []*executor
	disturbed []func()
	often     int
	fates     []fate
	names     int
}

func newSimulation(t *rapid.T) *simulation {
	action := rapid.SampledFrom([]v1alpha1.RemediationAction{v1alpha1.ActionReconcile, v1alpha1.ActionRestart, v1alpha1.ActionQuarantine}).Draw(t, "action")
	batches := rapid.SampledFrom([][][]int32{{{0}}, {{0}, {1}}, {{0, 1}}}).Draw(t, "batches")
	gone := action == v1alpha1.ActionReconcile && rapid.IntRange(0, 3).Draw(t, "gone") == 0
	w := newWorld(action, batches, gone)
	if action == v1alpha1.ActionReconcile && rapid.IntRange(0, 2).Draw(t, "standby") == 0 {
		w.plan.Spec.Plan.Strategy = v1alpha1.StrategyBlueGreen
	}
	s := &simulation{T: t, w: w, executors: []*executor{{w: w, holder: "a"}, {w: w, holder: "b"}}}
	all := []func(){
		s.dies, s.changes, s.puts, s.churns, func() { w.replace(s.some()) }, s.asks, s.closes,
		func() { w.damaged = !w.damaged }, func() { w.forbidden = !w.forbidden }, func() { w.mute = !w.mute }, w.sweep,
		func() { w.assess(s.some()) }, func() { w.quarantineByOther(s.some()) },
		s.inBetween(s.dies), s.inBetween(s.asks), s.inBetween(s.asks), s.inBetween(s.changes), s.inBetween(s.puts), s.inBetween(s.churns),
		s.inBetween(func() { w.assess(s.some()) }), s.inBetween(func() { w.replace(s.some()) }),
	}
	for i, d := range all {
		if rapid.IntRange(0, 3).Draw(t, fmt.Sprint("disturbance ", i)) == 0 {
			s.disturbed = append(s.disturbed, d)
		}
	}
	s.often = rapid.SampledFrom([]int{2, 4, 8, 25}).Draw(t, "how seldom")
	s.fates = []fate{fine, fine, fine, fine, fine, fine, fine, fine}
	for _, f := range []fate{unsent, unanswered, late} {
		if rapid.Bool().Draw(t, fmt.Sprint("fate ", f)) {
			s.fates = append(s.fates, f, f)
		}
	}
	return s
}

// inBetween is a disturbance that comes while a write may be on its way.
func (s *simulation) inBetween(do func()) func() {
	return func() {
		for i := range s.w.plan.Status.Steps {
			if s.w.plan.Status.Steps[i].State == v1alpha1.StepIntent {
				do()
				return
			}
		}
	}
}

func (s *simulation) some() int { return rapid.IntRange(0, len(s.w.objects)-1).Draw(s.T, "target") }

func (s *simulation) dies() {
	s.names++
	e := rapid.SampledFrom(s.executors).Draw(s.T, "who dies")
	e.restart(fmt.Sprint("again-", s.names))
}

func (s *simulation) changes() {
	s.w.foreign(s.some(), rapid.SampledFrom([]string{desiredHash, "pl1:other", driftedHash}).Draw(s.T, "to"))
}

// puts takes a target back to what it was, as a bot does.
func (s *simulation) puts() { s.w.foreign(s.some(), driftedHash) }

func (s *simulation) churns() {
	o := s.w.objects[s.some()]
	o.version++
	o.ready = rapid.Bool().Draw(s.T, "ready")
}

func (s *simulation) asks() {
	s.w.ask(rapid.SampledFrom([]v1alpha1.PlanVerb{"", "", v1alpha1.PlanPause, v1alpha1.PlanCancel, v1alpha1.PlanExecute}).Draw(s.T, "verb"))
}

func (s *simulation) closes() {
	s.w.closed = rapid.SampledFrom([]string{"", "the window is closed"}).Draw(s.T, "closed")
}

// act is one thing that happens.
func (s *simulation) act() {
	switch n := rapid.IntRange(0, s.often).Draw(s.T, "what"); {
	case n == 0 && len(s.disturbed) > 0:
		s.disturbed[rapid.IntRange(0, len(s.disturbed)-1).Draw(s.T, "which")]()
	case n == 1 && rapid.Bool().Draw(s.T, "time"):
		s.w.now = s.w.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(s.T, "seconds")) * time.Second)
		for _, o := range s.w.objects {
			o.ready = true
		}
		s.w.controllers()
		return
	case n == 2:
		s.w.someArrive(s.T)
	}
	e := s.executors[0]
	if rapid.IntRange(0, 4).Draw(s.T, "the other one") == 0 {
		e = s.executors[1]
	}
	if e.pending == nil {
		e.decide()
	}
	if rapid.IntRange(0, 9).Draw(s.T, "sleeps") == 0 {
		return
	}
	before := len(s.w.delayed)
	e.carry(rapid.SampledFrom(s.fates).Draw(s.T, "fate"))
	if len(s.w.delayed) > before {
		s.whileItIsLate()
	}
}

// whileItIsLate ends or pauses the plan, or takes away what it needs, while a
// write is under way that may arrive at any time: what fences are for.
func (s *simulation) whileItIsLate() {
	switch rapid.IntRange(0, 4).Draw(s.T, "while it is late") {
	case 0:
		s.w.ask(v1alpha1.PlanCancel)
	case 1:
		s.w.ask(v1alpha1.PlanPause)
	case 2:
		s.w.damaged = true
	case 3:
		s.w.halted = "the ledger is halted"
	default:
	}
}

func (w *world) someArrive(t *rapid.T) {
	if len(w.lateStandbys) > 0 && rapid.Bool().Draw(t, "those about standbys") {
		w.standbysArrive()
	}
	if len(w.delayed) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.delayed)-1).Draw(t, "which")
	r := w.delayed[i]
	w.delayed = append(w.delayed[:i:i], w.delayed[i+1:]...)
	w.arrive(r)
}

func (w *world) ask(verb v1alpha1.PlanVerb) {
	w.plan.Spec.Control.Verb, w.plan.Spec.Control.RequestedBy = verb, "alice"
	w.plan.Generation++
	w.version++
}

// settle: everybody stops, and what was late arrives; one executor goes on, and
// brings the plan to its end.
func (w *world) settle(t *rapid.T, executors []*executor) {
	if w.plan.Spec.Control.Verb == v1alpha1.PlanPause {
		w.ask("")
	}
	w.closed, w.damaged, w.forbidden, w.mute = "", false, false, false
	survivor := executors[0]
	survivor.restart("survivor")
	for range 2000 {
		if len(w.delayed) > 0 && rapid.IntRange(0, 20).Draw(t, "late") == 0 {
			w.someArrive(t)
		}
		survivor.decide()
		survivor.carry(fine)
		if w.broken != "" {
			t.Fatal(w.broken)
		}
		if survivor.waits == "done" {
			break
		}
		if survivor.waits != "" {
			w.sweep()
			w.now = w.now.Add(5 * time.Second)
			for _, o := range w.objects {
				o.ready = true
			}
			w.controllers()
		}
	}
	for len(w.delayed) > 0 {
		w.someArrive(t)
	}
	w.standbysArrive()
	if w.broken != "" {
		t.Fatal(w.broken)
	}
	w.sweep()
	w.ended(t, survivor)
}

// sweep ends the entries that nobody else will.
func (w *world) sweep() {
	for _, entry := range slices.Clone(w.ledger.Entries) {
		if entry.CompletionTime != nil {
			continue
		}
		switch action, outcome := LeftoverOf(w.plan, &entry); action {
		case Keep:
		case GiveBack:
			w.ledger, _ = ledger.Release(w.ledger, entry.StepReference, entry.Epoch)
		case Count:
			w.ledger, _ = ledger.Settle(w.ledger, entry.StepReference, outcome, w.now)
		}
	}
}

func (w *world) ended(t *rapid.T, survivor *executor) {
	if !Final(w.plan.Status.Phase) {
		t.Fatalf("the plan is %s, and %q: %+v", w.plan.Status.Phase, survivor.waits, w.plan.Status.Steps)
	}
	if w.announced == 0 {
		t.Fatalf("the plan is %s, and people were not told", w.plan.Status.Phase)
	}
	for i := range w.plan.Status.Steps {
		step := &w.plan.Status.Steps[i]
		if o := w.objects[i]; o.release != "" || o.deployment != "" || step.Standby != nil && step.Standby.Phase != v1alpha1.StandbyRemoved {
			t.Fatalf("the plan is %s, and left is the standby %+v, stored as %+v", w.plan.Status.Phase, o.standby, step.Standby)
		}
		if !ended(step) || step.Settled != v1alpha1.Enabled || step.Evidence == nil || !w.records[step.Index] {
			t.Fatalf("the plan is %s, and left is %+v", w.plan.Status.Phase, step)
		}
	}
	for _, entry := range w.ledger.Entries {
		if entry.CompletionTime == nil {
			t.Fatalf("the ledger keeps %+v", entry)
		}
	}
	for step, n := range w.effects {
		if state := w.plan.Status.Steps[step].State; n > 0 && state != v1alpha1.StepVerified && state != v1alpha1.StepFailed {
			t.Fatalf("step %d wrote, and ended as %s", step, state)
		}
	}
}
