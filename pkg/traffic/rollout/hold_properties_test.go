// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// holdWorld has an autoscaler for each variation, and an executor to which anything may happen.
type holdWorld struct {
	// minimum of each autoscaler, and wanted: the last one that a person has set.
	minimum, wanted map[string]int
	// held is what the executor holds, as its works say.
	held    *rollout.HeldAutoscaler
	asked   []rollout.Work
	answers map[workID]rollout.WorkAnswer
	// helps says that all goes well from now on.
	helps bool
	holds int
}

func newHoldWorld() *holdWorld {
	return &holdWorld{minimum: map[string]int{"a": 2, "b": 1}, wanted: map[string]int{"a": 2, "b": 1}, answers: map[workID]rollout.WorkAnswer{}}
}

// edit changes a minimum as a person does.
func (h *holdWorld) edit(t *rapid.T) {
	if rapid.IntRange(0, 19).Draw(t, "edits") == 0 {
		variation := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "autoscaler")
		h.minimum[variation] = rapid.IntRange(1, 6).Draw(t, "minimum")
		h.wanted[variation] = h.minimum[variation]
		if h.held != nil && h.held.Name == variation && h.held.Minimum == h.minimum[variation] {
			h.wanted[variation] = h.held.Former // the person and the executor cannot be told apart
		}
	}
}

// work has the executor carry works out in their order, or leave them.
func (h *holdWorld) work(t *rapid.T, state rollout.State) {
	slices.SortFunc(h.asked, func(a, b rollout.Work) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Number, b.Number)) })
	for _, w := range h.asked {
		id := workID{w.Run, w.Number}
		if h.answers[id].Phase == rollout.WorkSucceeded || h.answers[id].Phase == rollout.WorkIsRefused {
			continue
		}
		a := rollout.WorkAnswer{Run: w.Run, Number: w.Number, Verb: w.Verb, Variation: w.Variation, Replicas: w.Replicas, Phase: rollout.WorkSucceeded}
		switch isOver := state.Run == nil || state.Run.Number != w.Run || w.Replicas > 0 && state.Run.State.Ended(); {
		case isOver:
			a.Phase = rollout.WorkIsRefused
		case !h.helps:
			a.Phase = rapid.SampledFrom([]rollout.WorkPhase{rollout.WorkIsPending, rollout.WorkIsRunning, rollout.WorkSucceeded, rollout.WorkSucceeded, rollout.WorkSucceeded}).Draw(t, "phase")
			if a.Phase == rollout.WorkIsRunning && w.Replicas > 0 && rapid.Bool().Draw(t, "refuses") {
				a.Phase = rollout.WorkIsRefused
			}
		}
		if a.Phase == rollout.WorkSucceeded {
			h.carryOut(w, &a)
		}
		if h.answers[id] = a; a.Phase == rollout.WorkIsPending || a.Phase == rollout.WorkIsRunning {
			return
		}
	}
}

// carryOut is a naive twin of package work.
func (h *holdWorld) carryOut(w rollout.Work, a *rollout.WorkAnswer) {
	live := h.minimum[w.Variation]
	isOurs := h.held != nil && h.held.Name == w.Variation && h.held.Minimum == live
	switch {
	case w.Replicas == 0:
		if h.held != nil && h.minimum[h.held.Name] == h.held.Minimum {
			h.minimum[h.held.Name] = h.held.Former
		} else if h.held != nil {
			a.Message = "another writer"
		}
		h.held = nil
		return
	case isOurs:
		h.held = &rollout.HeldAutoscaler{Name: w.Variation, UID: "u", Former: h.held.Former, Minimum: max(live, w.Replicas)}
	case live < w.Replicas:
		h.held = &rollout.HeldAutoscaler{Name: w.Variation, UID: "u", Former: live, Minimum: w.Replicas}
	default:
		h.held = nil
	}
	if h.held != nil {
		h.minimum[w.Variation], a.Held = h.held.Minimum, h.held
		h.holds++
	}
}

// look decides once.
func (h *holdWorld) look(l *life, f rollout.Facts) rollout.Decision {
	h.work(l.T, l.state)
	for _, a := range h.answers {
		f.Works = append(f.Works, a)
	}
	d := rollout.Decide(f)
	open := 0
	for _, w := range d.After.Works {
		if w.Phase == rollout.WorkIsPending || w.Phase == rollout.WorkIsRunning {
			open++
		}
	}
	if open > 1 {
		l.Errorf("%d works are under way: %+v", open, d.After.Works)
	}
	for _, w := range d.Works {
		if !slices.ContainsFunc(h.asked, func(b rollout.Work) bool { return b.Run == w.Run && b.Number == w.Number }) {
			h.asked = append(h.asked, w)
		}
		if w.Replicas > 0 && !d.After.IsOn() {
			l.Errorf("work %+v is asked for, and the run has ended", w)
		}
	}
	if before := l.state.Weight(); d.Weight > before && d.After.Run != nil && f.Plan != nil && f.Plan.Fallback == rollout.FallbackHold {
		run := d.After.Run
		if at := d.After.Hold; run.State != rollout.Deploying && (at == nil || at.Run != run.Number || at.Variation != run.Active || at.Replicas < run.Capacity) {
			l.Errorf("the weight rises to %d, and %+v is held for %d", d.Weight, at, run.Capacity)
		}
	}
	return d
}

// However runs end, and wherever the executor is cut off, each autoscaler has the minimum in the end that a
// person has set last.
func TestWhateverHappenedTheFormerMinimumIsPutBack(t *testing.T) {
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		l, h := &life{T: t, now: noon, revisions: map[string]string{"a": "1", "b": "1"}}, newHoldWorld()
		ask := func(f *rollout.Facts) {
			if f.Plan != nil && rapid.IntRange(0, 3).Draw(t, "holds") > 0 {
				f.Plan.Fallback = rollout.FallbackHold
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "decisions") {
			f := l.draw()
			ask(&f)
			h.edit(t)
			d := h.look(l, f)
			l.check(f, d)
			if l.state = d.After; rapid.IntRange(0, 3).Draw(t, "told") > 0 {
				l.weight, l.checking = d.Weight, d.Checking
			}
		}
		h.helps = true
		held += h.holds
		isDeleted := rapid.Bool().Draw(t, "is deleted")
		arms := l.draw().Arms
		for variation := range map[string]bool{"a": true, "b": true} {
			arms[variation] = rollout.Arm{Revision: rollout.Revision{Hash: variation + l.revisions[variation]}, Ready: 4, Targets: 4, Updated: 4}
		}
		isReturned := false
		for look := range 30 {
			f := l.draw()
			ask(&f)
			f.Arms, f.Paused, f.Webhooks, f.Control = arms, false, nil, nil
			f.Standing = rollout.Standing{Active: l.state.Active, Weight: l.weight, Checking: l.checking, Acknowledged: true}
			if isDeleted {
				f.Deletion = &rollout.Deletion{To: l.state.Active, Ready: 4, Wants: 4}
			} else if l.state.IsOn() {
				f.Control = &rollout.Control{Verb: rollout.VerbRollback, Run: l.state.Run.Number, RequestedBy: "ada", Reason: time.Duration(look).String()}
			}
			d := h.look(l, f)
			isReturned = isReturned || d.Returned
			if d.Returned && d.After.NeedsPutBack() {
				t.Errorf("the release goes, and holds %+v", d.After.Hold)
			}
			l.state, l.weight, l.checking = d.After, d.Weight, d.Checking
		}
		if l.state.IsOn() || l.state.IsHolding() || isDeleted != isReturned {
			t.Errorf("in the end the state is %+v, hold %+v, works %+v, waits for %+v", l.state.Run, l.state.Hold, l.state.Works, l.state.Waiting)
		}
		for variation, want := range h.wanted {
			if got := h.minimum[variation]; got != want {
				t.Errorf("the minimum of %s is %d, want %d: %+v", variation, got, want, h.asked)
			}
		}
	})
	if held == 0 {
		t.Error("the executor never held a minimum, so this proves nothing")
	}
}
