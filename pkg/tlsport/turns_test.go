// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// asker is somebody with a place or a ticket, in the order of asking.
type asker struct {
	from   string
	ticket *ticket // nil: had a place at once
	// overtaken counts the turns of other addresses since its address, which
	// waits, had one.
	overtaken map[string]int
}

func (a *asker) hasTurn() bool {
	if a.ticket == nil {
		return true
	}
	select {
	case <-a.ticket.granted:
		return true
	default:
		return false
	}
}

// turnsModel drives turns and checks after every step what is promised.
type turnsModel struct {
	rt      *rapid.T
	turns   *turns
	places  int
	running []*asker
	waiting []*asker
}

func (m *turnsModel) ask(from string) {
	a := &asker{from: from, ticket: m.turns.ask(from), overtaken: map[string]int{}}
	if (a.ticket == nil) != (len(m.running) < m.places) {
		m.rt.Fatalf("%d of %d places are taken; had a place at once: %v", len(m.running), m.places, a.ticket == nil)
	}
	if a.ticket == nil {
		m.running = append(m.running, a)
	} else {
		m.waiting = append(m.waiting, a)
	}
}

func (m *turnsModel) leave(i int) {
	m.running = slices.Delete(m.running, i, i+1)
	m.turns.leave()
	var next *asker
	for _, a := range m.waiting {
		if !a.hasTurn() {
			continue
		}
		if next != nil {
			m.rt.Fatal("two turns for one")
		}
		next = a
	}
	if (next != nil) != (len(m.waiting) > 0) {
		m.rt.Fatalf("%d wait; somebody got the turn: %v", len(m.waiting), next != nil)
	}
	if next == nil {
		return
	}
	m.check(next)
	m.waiting = slices.DeleteFunc(m.waiting, func(a *asker) bool { return a == next })
	m.running = append(m.running, next)
}

// check looks at who was passed over for this turn.
func (m *turnsModel) check(next *asker) {
	for _, a := range m.waiting {
		switch {
		case a == next:
		case a.from == next.from:
			if slices.Index(m.waiting, a) < slices.Index(m.waiting, next) {
				m.rt.Fatalf("%s was not served in order", a.from)
			}
			clear(a.overtaken) // Its address has had a turn.
		default:
			if a.overtaken[next.from]++; a.overtaken[next.from] > 1 {
				m.rt.Fatalf("%s had two turns while %s waited for one", next.from, a.from)
			}
		}
	}
}

func (m *turnsModel) withdraw(i int) {
	m.turns.withdraw(m.waiting[i].ticket)
	m.waiting = slices.Delete(m.waiting, i, i+1)
}

func TestTurnsGoAroundTheAddresses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		places := rapid.IntRange(1, 3).Draw(rt, "places")
		m := &turnsModel{rt: rt, turns: newTurns(places), places: places}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"ask", "ask", "leave", "withdraw"}).Draw(rt, "step") {
			case "ask":
				m.ask(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "from"))
			case "leave":
				if len(m.running) > 0 {
					m.leave(rapid.IntRange(0, len(m.running)-1).Draw(rt, "who"))
				}
			case "withdraw":
				if len(m.waiting) > 0 {
					m.withdraw(rapid.IntRange(0, len(m.waiting)-1).Draw(rt, "who"))
				}
			}
		}
		for len(m.running) > 0 {
			m.leave(0)
		}
		if m.turns.free != places || len(m.turns.queues) != 0 || m.turns.rota.Len() != 0 {
			rt.Fatalf("at the end %d of %d places are free, %d queues are left", m.turns.free, places, len(m.turns.queues))
		}
	})
}

func TestATurnIsWaitedForNoLongerThanTheLimit(t *testing.T) {
	tests := map[string]struct {
		act  func(t *turns, gone chan struct{}) // after a second
		want error
		took time.Duration
	}{
		"its turn comes":           {act: func(t *turns, _ chan struct{}) { t.leave() }, took: time.Second},
		"its turn does not come":   {act: func(*turns, chan struct{}) {}, want: errNoTurn, took: 3 * time.Second},
		"the connection is closed": {act: func(_ *turns, gone chan struct{}) { close(gone) }, want: net.ErrClosed, took: time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns, gone := newTurns(1), make(chan struct{})
				if err := turns.enter("a", time.Second, gone); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Second, func() { tc.act(turns, gone) })
				began := time.Now()
				err := turns.enter("b", 3*time.Second, gone)
				if !errors.Is(err, tc.want) || time.Since(began) != tc.took {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(began), tc.want, tc.took)
				}
				if tc.want == nil {
					turns.leave()
				} else if turns.free != 0 {
					t.Error("who gave up left a place behind")
				}
			})
		})
	}
}

// The turn comes in the moment in which its holder gives up.
func TestNoTurnIsLostToWhoGivesUp(t *testing.T) {
	turns := newTurns(1)
	if w := turns.ask("a"); w != nil {
		t.Fatal("the free place was not given")
	}
	late, next := turns.ask("b"), turns.ask("c")
	turns.leave()
	turns.withdraw(late)
	select {
	case <-next.granted:
	default:
		t.Fatal("the turn was not passed on")
	}
	turns.leave()
	if turns.free != 1 || len(turns.queues) != 0 {
		t.Errorf("%d places are free, %d queues are left", turns.free, len(turns.queues))
	}
}

func BenchmarkTurn(b *testing.B) {
	turns := newTurns(1)
	for b.Loop() {
		if err := turns.enter("10.0.0.1", time.Second, nil); err != nil {
			b.Fatal(err)
		}
		turns.leave()
	}
}
