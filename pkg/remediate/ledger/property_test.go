// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// twin is what really happens: it keeps everything for ever, in exact times, and
// knows when each write was.
type twin struct {
	writes []write
	// open are the granted steps that have not ended, by number.
	open map[int]*write
}

type write struct {
	n        int
	policy   string
	target   string
	reserved time.Time
	at       time.Time // of the write; zero while there was none
	ended    time.Time
	failed   bool
}

// world draws a random life of a ledger, through its stored form each time.
type world struct {
	*rapid.T
	rules Rules
	s     *Status
	now   time.Time
	twin  twin
	next  int
}

func drawCap(t *rapid.T, name string, most int) *int32 {
	if rapid.Bool().Draw(t, name+" none") {
		return nil
	}
	return new(int32(rapid.IntRange(0, most).Draw(t, name))) //nolint:gosec // small
}

func drawCaps(t *rapid.T, name string) Caps {
	return Caps{Concurrent: drawCap(t, name+" at once", 3), PerHour: drawCap(t, name+" per hour", 4), PerDay: drawCap(t, name+" per day", 8)}
}

func newWorld(t *rapid.T) *world {
	first := Begin(epoch, true)
	return &world{T: t, s: &first, now: epoch, twin: twin{open: map[int]*write{}}, rules: Rules{
		Policy: Limits{
			Caps:             drawCaps(t, "policy"),
			Cooldown:         time.Duration(rapid.SampledFrom([]int{0, 0, 1, 7, 90}).Draw(t, "cooldown")) * time.Minute,
			FailureThreshold: int32(rapid.IntRange(0, 3).Draw(t, "threshold")), //nolint:gosec // small
			OpenDuration:     time.Duration(rapid.IntRange(1, 90).Draw(t, "open")) * time.Minute,
		},
		All: drawCaps(t, "all"),
	}}
}

func (w *world) pass() {
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int64{0, 1, 333, 1000, 59_999, 60_000, 600_001, 3_599_000, 3_600_000, 20_000_000}).Draw(w.T, "ms")) * time.Millisecond)
}

func (w *world) reserve() {
	w.next++
	r := request(w.next, rapid.SampledFrom([]string{"p", "q"}).Draw(w.T, "policy"), rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(w.T, "target"))
	gates := Gates(w.s, r, w.rules, w.now)
	next, verdict := Reserve(w.s, r, w.rules, w.now)
	w.s = next
	if !verdict.Granted {
		w.refusedForAReason(r, verdict.Refused)
		return
	}
	for _, g := range gates {
		if !g.Open {
			w.Fatalf("granted past %+v", g)
		}
	}
	w.twin.open[w.next] = &write{n: w.next, policy: r.PolicyUID, target: r.TargetUID, reserved: w.now}
}

// refusedForAReason: when nothing else happens, a gate with a time opens then and
// not a second earlier.
func (w *world) refusedForAReason(r Request, closed Gate) {
	if closed.Until.IsZero() {
		return
	}
	at := func(t time.Time) bool {
		for _, g := range Gates(w.s, r, w.rules, t) {
			if g.Name == closed.Name {
				return g.Open
			}
		}
		return false
	}
	if !closed.Until.After(w.now) || !at(closed.Until) || at(closed.Until.Add(-time.Second)) && closed.Until.Add(-time.Second).After(w.now) {
		w.Fatalf("%s says it opens at %s", closed.Name, closed.Until)
	}
}

func (w *world) someOpen() *write {
	var numbers []int
	for n := 1; n <= w.next; n++ {
		if w.twin.open[n] != nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return w.twin.open[rapid.SampledFrom(numbers).Draw(w.T, "step")]
}

func (w *world) write() {
	if o := w.someOpen(); o != nil && o.at.IsZero() {
		o.at = w.now
	}
}

func (w *world) end() {
	o := w.someOpen()
	if o == nil {
		return
	}
	var changed bool
	switch {
	case o.at.IsZero():
		w.s, changed = Release(w.s, step(o.n), 0)
	default:
		o.failed = rapid.Bool().Draw(w.T, "fails")
		outcome := v1alpha1.LedgerSucceeded
		if o.failed {
			outcome = v1alpha1.LedgerFailed
		}
		w.s, changed = Settle(w.s, step(o.n), outcome, w.now)
	}
	if !changed {
		w.Fatalf("step %d cannot end", o.n)
	}
	o.ended = w.now
	if !o.at.IsZero() {
		w.twin.writes = append(w.twin.writes, *o)
	}
	delete(w.twin.open, o.n)
}

// all are the writes that were, those of steps that have not ended included.
func (w *world) all() []write {
	all := append([]write(nil), w.twin.writes...)
	for _, o := range w.twin.open {
		if !o.at.IsZero() {
			all = append(all, *o)
		}
	}
	return all
}

func (w *world) holds() {
	for _, policy := range []string{"p", "q"} {
		mine := func(x write) bool { return x.policy == policy }
		w.inNoWindow("policy "+policy, w.rules.Policy.Caps, mine)
		w.cool(policy)
	}
	w.inNoWindow("all", w.rules.All, func(write) bool { return true })
	for _, o := range w.twin.open {
		for _, other := range w.twin.open {
			if o.n != other.n && o.target == other.target {
				w.Fatalf("steps %d and %d hold %s", o.n, other.n, o.target)
			}
		}
	}
}

// inNoWindow: of the windows with the most writes, one begins with a write.
func (w *world) inNoWindow(who string, caps Caps, of func(write) bool) {
	for _, bound := range []struct {
		limit  *int32
		period time.Duration
	}{{caps.PerHour, hour}, {caps.PerDay, day}} {
		if bound.limit == nil {
			continue
		}
		for _, first := range w.all() {
			n := int32(0)
			for _, x := range w.all() {
				if of(x) && !x.at.Before(first.at) && x.at.Before(first.at.Add(bound.period)) {
					n++
				}
			}
			if n > *bound.limit {
				w.Fatalf("%s: %d writes within %s from %s, limit %d", who, n, bound.period, first.at, *bound.limit)
			}
		}
	}
	open := int32(0)
	for _, o := range w.twin.open {
		if of(*o) {
			open++
		}
	}
	if caps.Concurrent != nil && open > *caps.Concurrent {
		w.Fatalf("%s: %d at once, limit %d", who, open, *caps.Concurrent)
	}
}

// cool: between the end of a write and the reservation of the next one of the
// same policy there is the cooldown.
func (w *world) cool(policy string) {
	for _, x := range w.twin.writes {
		for _, y := range w.all() {
			if x.policy == policy && y.policy == policy && y.reserved.After(x.ended) && y.reserved.Sub(x.ended) < w.rules.Policy.Cooldown {
				w.Fatalf("step %d was granted %s after step %d ended", y.n, y.reserved.Sub(x.ended), x.n)
			}
		}
	}
}

func TestNoLimitIsEverPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"time passes":  func(t *rapid.T) { w.T = t; w.pass() },
			"a step asks":  func(t *rapid.T) { w.T = t; w.reserve() },
			"a step asks ": func(t *rapid.T) { w.T = t; w.reserve() },
			"one writes":   func(t *rapid.T) { w.T = t; w.write() },
			"one ends":     func(t *rapid.T) { w.T = t; w.end() },
			"":             func(t *rapid.T) { w.T = t; w.holds() },
		})
	})
}

// naiveBreaker is a breaker written down as its definition says. Steps overlap: a
// step may end long after the breaker has opened, or while another step tries it.
type naiveBreaker struct {
	Limits
	// row counts the failures since the last success while it was closed.
	row int32
	// open says since when it is open; probe is the step that tries it, or 0.
	open  time.Time
	probe int
}

func (b *naiveBreaker) lets(now time.Time) bool {
	return b.open.IsZero() || b.probe == 0 && !now.Before(b.open.Add(b.OpenDuration))
}

func (b *naiveBreaker) state() v1alpha1.BreakerState {
	switch {
	case b.open.IsZero():
		return v1alpha1.BreakerClosed
	case b.probe == 0:
		return v1alpha1.BreakerOpen
	}
	return v1alpha1.BreakerHalfOpen
}

func (b *naiveBreaker) begins(n int) {
	if !b.open.IsZero() {
		b.probe = n
	}
}

func (b *naiveBreaker) succeeds(n int) {
	if b.open.IsZero() || b.probe == n {
		b.row, b.open, b.probe = 0, time.Time{}, 0
	}
}

func (b *naiveBreaker) fails(now time.Time) {
	b.row++
	if b.probe != 0 || b.open.IsZero() && b.row >= b.FailureThreshold {
		b.open, b.probe = now, 0
	}
}

func (b *naiveBreaker) writesNothing(n int) {
	if b.probe == n {
		b.probe = 0
	}
}

func TestTheBreakerIsTheNaiveOneWithStepsThatOverlap(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{FailureThreshold: int32(rapid.IntRange(1, 3).Draw(t, "threshold")), OpenDuration: 10 * time.Minute} //nolint:gosec // small
		first := Begin(epoch, true)
		s, now, naive := &first, epoch, naiveBreaker{Limits: limits}
		var underWay []int
		for n := range rapid.SampledFrom([]int{5, 40, 80}).Draw(t, "acts") {
			n++
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 9, 10, 11}).Draw(t, "minutes")) * time.Minute)
			if len(underWay) == 0 || rapid.SampledFrom([]bool{true, true, false}).Draw(t, "a step asks") {
				next, verdict := Reserve(s, request(n, "p", fmt.Sprint(n)), Rules{Policy: limits}, now)
				s = next
				if want := naive.lets(now); verdict.Granted != want {
					t.Fatalf("step %d: granted %t, want %t: %+v, want %+v", n, verdict.Granted, want, s.Breakers, naive)
				}
				if verdict.Granted {
					naive.begins(n)
					underWay = append(underWay, n)
				}
				continue
			}
			i := rapid.IntRange(0, len(underWay)-1).Draw(t, "which")
			ends := underWay[i]
			underWay = slices.Delete(underWay, i, i+1)
			older := naive.probe != 0 && naive.probe != ends
			how := rapid.SampledFrom([]string{"well", "badly", "not at all"}).Draw(t, "ends")
			switch how {
			case "well":
				s, _ = Settle(s, step(ends), v1alpha1.LedgerSucceeded, now)
				naive.succeeds(ends)
			case "badly":
				s, _ = Settle(s, step(ends), v1alpha1.LedgerFailed, now)
				naive.fails(now)
			default:
				s, _ = Release(s, step(ends), 0)
				naive.writesNothing(ends)
			}
			if older {
				seen[how]++
			}
			if got, want := Breaker(s, "p"), naive.state(); got != want {
				t.Fatalf("after step %d ended %s the breaker is %s, want %s", ends, how, got, want)
			}
		}
	})
	for _, how := range []string{"well", "badly", "not at all"} {
		if seen[how] == 0 {
			t.Errorf("no step ended %s while another one tried the breaker", how)
		}
	}
}
