// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ProbeInterval is how old the answer of a store may be that another probe is not made for.
const ProbeInterval = time.Minute

// Answer is what a store said last about writing a record.
type Answer struct {
	At time.Time
	// Err says why no record could be written; nil when one could.
	Err error
}

// Monitor is a store that remembers its last answer, and asks for another one only when
// that is old. The record that was written last is an answer like a probe.
type Monitor struct {
	Store
	interval time.Duration
	now      func() time.Time

	probing chan struct{} // full while one caller probes; others wait for its answer
	mu      sync.Mutex
	last    *Answer
	// failures counts the failures since the last success, and doubted is when a first failure
	// was last followed by a probe before its time. A network may lose one answer, and a store
	// that is down fails again.
	failures int
	doubted  time.Time
}

// NewMonitor makes a monitor of a store that is probed once in an interval at most, by a
// clock, and once more when it has failed for the first time. The store must bound its calls in
// time, see [WithDeadline].
func NewMonitor(store Store, interval time.Duration, now func() time.Time) *Monitor {
	return &Monitor{Store: store, interval: interval, now: now, probing: make(chan struct{}, 1)}
}

// Last returns the last answer; false before the first one.
func (m *Monitor) Last() (Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		return Answer{}, false
	}
	return *m.last, true
}

// Create implements Store.
func (m *Monitor) Create(ctx context.Context, name string, data []byte) error {
	err := m.Store.Create(ctx, name, data)
	if !errors.Is(err, ErrExists) { // says nothing about the next name
		m.answered(ctx, err)
	}
	return err
}

// Ready implements Store. It probes the store when the last answer is old.
func (m *Monitor) Ready(ctx context.Context) error {
	select {
	case m.probing <- struct{}{}:
	default:
		select {
		case m.probing <- struct{}{}:
		case <-ctx.Done():
			return &StoreError{Op: "probe", Reason: StoreUnreachable, Err: ctx.Err()}
		}
	}
	defer func() { <-m.probing }()
	if answer, counts := m.standing(); counts && ctx.Err() == nil {
		return answer.Err
	}
	err := m.Store.Ready(ctx)
	m.answered(ctx, err)
	return err
}

// standing returns the last answer; false when another one is due.
func (m *Monitor) standing() (Answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	switch {
	case m.last == nil || now.Sub(m.last.At) >= m.interval:
		return Answer{}, false
	case m.failures == 1 && now.Sub(m.doubted) >= m.interval:
		m.doubted = now
		return Answer{}, false
	}
	return *m.last, true
}

// answered remembers an answer. What the end of the process cut short is none.
func (m *Monitor) answered(ctx context.Context, err error) {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = &Answer{At: m.now(), Err: err}
	m.failures++
	if err == nil {
		m.failures = 0
	}
}
