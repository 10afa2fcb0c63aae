// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// patience bounds how long a question waits for its turn and its answer.
	patience = 10 * time.Second
	// atOnce is how many questions of one memory the API server is asked at once.
	atOnce = 32
)

// Memory has answers of one sort by their questions. Its methods may be called from any goroutine.
type Memory[V any] struct {
	clock   clock.PassiveClock
	counts  Counts
	kept    *lru.Cache
	flights singleflight.Group
	turns   chan struct{}
}

// New makes a memory of so many answers at most.
func New[V any](passive clock.PassiveClock, entries int, counts Counts) *Memory[V] {
	return &Memory[V]{clock: passive, counts: counts, kept: lru.New(entries), turns: make(chan struct{}, atOnce)}
}

// answer counts before its end.
type answer[V any] struct {
	value V
	until time.Time
}

// Ask gets an answer from the API server, and how long the answer lasts from the time of the question.
type Ask[V any] func(ctx context.Context) (value V, lasts time.Duration, err error)

// Get returns the answer to a question: the remembered one, or the one that ask gets. The call of ask
// goes on when ctx ends, since others may wait for it.
func (m *Memory[V]) Get(ctx context.Context, question string, ask Ask[V]) (V, error) {
	var none V
	if known, found := m.find(question); found {
		return known, nil
	}
	result := m.flights.DoChan(question, func() (any, error) {
		if known, found := m.find(question); found { // the flight before ended meanwhile
			return known, nil
		}
		return m.ask(context.WithoutCancel(ctx), question, ask)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil //nolint:forcetypeassert // the flights have no other values
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for the API server: %w", context.Cause(ctx))
	}
}

// find returns an answer that has not ended.
func (m *Memory[V]) find(question string) (V, bool) {
	if kept, found := m.kept.Get(question); found {
		if a := kept.(answer[V]); m.clock.Now().Before(a.until) { //nolint:forcetypeassert // it has no other values
			m.counts.remembered.Inc()
			return a.value, true
		}
	}
	var none V
	return none, false
}

// ask asks when it is the turn of the question, and remembers the answer.
func (m *Memory[V]) ask(ctx context.Context, question string, ask Ask[V]) (V, error) {
	var none V
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case m.turns <- struct{}{}:
		defer func() { <-m.turns }()
	case <-ctx.Done():
		m.counts.failed.Inc()
		return none, fmt.Errorf("waiting for a turn to ask the API server: %w", ctx.Err())
	}
	asked := m.clock.Now()
	value, lasts, err := ask(ctx)
	if err != nil {
		m.counts.failed.Inc()
		return none, err
	}
	m.counts.answered.Inc()
	m.kept.Add(question, answer[V]{value, asked.Add(lasts)})
	return value, nil
}
