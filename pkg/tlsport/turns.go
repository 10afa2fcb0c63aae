// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"time"
)

// errNoTurn says that a handshake waited too long for its turn.
var errNoTurn = errors.New("no turn to compute the TLS handshake")

// turns bounds how many handshakes are computed at once. Those that wait get
// their turn address by address, and within an address in the order in which
// they came: with n addresses that have work at least every n-th turn is a
// given address's, however many handshakes the others begin.
type turns struct {
	mu   sync.Mutex
	free int
	// queues hold who waits, by address. rota holds the addresses that have a
	// queue; the first one is next.
	queues map[string]*queue
	rota   list.List
}

// queue is who waits of one address; there is at least one.
type queue struct {
	from    string
	waiting list.List
	rota    *list.Element
}

// ticket is held by who waits for a turn.
type ticket struct {
	granted chan struct{} // closed when it is its turn
	queue   *queue
	element *list.Element // nil when it is its turn
}

// newTurns lets so many handshakes be computed at once.
func newTurns(places int) *turns {
	return &turns{free: places, queues: map[string]*queue{}}
}

// enter waits for a turn, at most for the limit or until gone is closed. It
// fails with errNoTurn or net.ErrClosed; else leave has to be called.
func (t *turns) enter(from string, limit time.Duration, gone <-chan struct{}) error {
	w := t.ask(from)
	if w == nil {
		return nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.granted:
		return nil
	case <-gone:
		t.withdraw(w)
		return net.ErrClosed
	case <-timer.C:
		t.withdraw(w)
		return errNoTurn
	}
}

// ask takes a place when one is free, or else a ticket.
func (t *turns) ask(from string) *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 { // Then nobody waits.
		t.free--
		return nil
	}
	q := t.queues[from]
	if q == nil {
		q = &queue{from: from}
		t.queues[from] = q
		q.rota = t.rota.PushBack(q)
	}
	w := &ticket{granted: make(chan struct{}), queue: q}
	w.element = q.waiting.PushBack(w)
	return w
}

// leave gives a place to the next address, which then goes to the end.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

func (t *turns) next() {
	first := t.rota.Front()
	if first == nil {
		t.free++
		return
	}
	q := first.Value.(*queue)
	w := q.waiting.Remove(q.waiting.Front()).(*ticket)
	w.element = nil
	close(w.granted)
	t.rota.MoveToBack(first)
	t.tidy(q)
}

// withdraw gives a ticket back, and its turn if that has come meanwhile.
func (t *turns) withdraw(w *ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.element == nil {
		t.next()
		return
	}
	w.queue.waiting.Remove(w.element)
	w.element = nil
	t.tidy(w.queue)
}

// tidy forgets a queue in which nobody is left.
func (t *turns) tidy(q *queue) {
	if q.waiting.Len() == 0 {
		t.rota.Remove(q.rota)
		delete(t.queues, q.from)
	}
}
