// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Strand is one of the workers of a life. The workers of one process share its memory, so the
// scheduler lets one of them go on at a time: a worker that a timer or a channel wakes waits for
// its turn. What another worker sees of the memory then follows from the seed.
type Strand struct {
	life  *Life
	index int
	ctx   context.Context //nolint:containedctx // it is the process that the context stands for
	// alone says that no other worker of the life goes on, because this one has a lock. A worker
	// may ask several things at once.
	alone atomic.Bool
}

type strandKey struct{}

type aloneKey struct{}

// Fork runs bodies as the workers of a life, and returns when all have ended.
func (l *Life) Fork(bodies ...func(*Strand)) {
	ended := make(chan struct{}, len(bodies))
	for i := range bodies {
		s := &Strand{life: l, index: i}
		s.ctx = context.WithValue(l.ctx, strandKey{}, s) //nolint:fatcontext // each worker has one of its own
		l.strands = append(l.strands, s)
	}
	for i, body := range bodies {
		s := l.strands[i]
		go func() {
			defer func() { ended <- struct{}{} }() // it may have died in the middle
			s.turn()
			body(s)
		}()
	}
	for range bodies {
		<-ended
	}
	l.mustLive()
}

// Context ends with the life. A message that is sent with it is one of this worker.
func (s *Strand) Context() context.Context { return s.ctx }

// Await waits as [Life.Await] does, and then for the turn of the worker.
func (s *Strand) Await(told <-chan struct{}, atMost time.Duration) bool {
	s.alone.Store(false)
	was := s.life.Await(told, atMost)
	s.turn()
	return was
}

// Turn waits for the turn of the worker. A deadline of the product may have woken it beside another one.
func (s *Strand) Turn() { s.turn() }

// Turn does not wait: a life without workers has all turns.
func (*Life) Turn() {}

// Alone marks what a worker asks while it has a lock that others of its process wait for without
// an end: no other worker goes on until this one asks something else. A bubble cannot wait for
// such a lock.
func Alone(ctx context.Context) context.Context { return context.WithValue(ctx, aloneKey{}, true) }

// Pause waits as [Life.Sleep] does, as the worker that a context belongs to.
func (l *Life) Pause(ctx context.Context, d time.Duration) {
	s := enter(ctx)
	l.Sleep(d)
	s.turn()
}

// Linger waits as the worker that a context belongs to, and no longer than that context.
func (l *Life) Linger(ctx context.Context, d time.Duration) {
	s := enter(ctx)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	case <-l.ctx.Done():
	}
	s.turn()
}

// enter is the worker that asks something; nil in a life without workers.
func enter(ctx context.Context) *Strand {
	s, _ := ctx.Value(strandKey{}).(*Strand)
	if s != nil {
		s.alone.Store(ctx.Value(aloneKey{}) != nil)
	}
	return s
}

// turn waits until the scheduler lets the worker go on.
func (s *Strand) turn() {
	if s == nil {
		return
	}
	w := &await{life: s.life, strand: s, told: make(chan fate, 1)}
	s.life.actor.s.queue(w)
	select {
	case <-w.told:
	case <-s.life.ctx.Done():
	}
	s.life.mustLive()
}

// queue has a worker wait for its turn.
func (s *Scheduler) queue(w *await) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = append(s.turns, w)
	s.signal()
}

// signal wakes the scheduler; it is locked.
func (s *Scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// yields lets the next worker go on that waits for its turn, and says whether there is one.
func (s *Scheduler) yields() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns = slices.DeleteFunc(s.turns, func(w *await) bool { return w.life.dead })
	ready := slices.DeleteFunc(slices.Clone(s.turns), locked)
	if len(ready) == 0 {
		return false
	}
	next := slices.MinFunc(ready, func(a, b *await) int {
		return cmp.Or(cmp.Compare(a.life.actor.index, b.life.actor.index), cmp.Compare(a.index(), b.index()))
	})
	s.turns = slices.DeleteFunc(s.turns, func(w *await) bool { return w == next })
	next.told <- fine
	return true
}

// locked says that another worker of the process has a lock.
func locked(w *await) bool {
	return slices.ContainsFunc(w.life.strands, func(other *Strand) bool { return other != w.strand && other.alone.Load() })
}

// index of the worker in its life.
func (w *await) index() int {
	if w.strand == nil {
		return 0
	}
	return w.strand.index
}

// sender is who sends a message, for the trace.
func (w *await) sender() string {
	if w.strand == nil {
		return w.life.Name
	}
	return fmt.Sprintf("%s/%d", w.life.Name, w.strand.index)
}
