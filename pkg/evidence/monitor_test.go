// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

// probed is a store that counts probes, and answers all calls alike.
type probed struct {
	evidence.Store
	err    error
	probes int
}

func (p *probed) Create(context.Context, string, []byte) error { return p.err }

func (p *probed) Ready(context.Context) error {
	p.probes++
	return p.err
}

var errFull = errors.New("no space left")

// D24 of the review of remediation: a plan that waited for ten minutes had the store
// probed 302 times.
func TestAStoreIsProbedOnceAMinuteAtMost(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int
	}{
		"a store that is ready": {nil, 10},
		"a store that is full, and once more after its first failure": {errFull, 11},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &probed{err: test.err}
				m := evidence.NewMonitor(store, evidence.ProbeInterval, time.Now)
				for range 300 {
					if got := m.Ready(t.Context()); !errors.Is(got, test.err) {
						t.Errorf("it answers %v", got)
					}
					pass(2 * time.Second)
				}
				if store.probes != test.want {
					t.Errorf("%d probes in ten minutes, want %d", store.probes, test.want)
				}
			})
		})
	}
}

// One lost answer about a record kept all plans from writing for a minute.
func TestOneLostAnswerIsDoubted(t *testing.T) {
	lost := func(t *testing.T, m *evidence.Monitor, store *probed) {
		t.Helper()
		store.err = errFull
		if err := m.Create(t.Context(), "a/1", nil); !errors.Is(err, errFull) {
			t.Errorf("the lost answer is %v", err)
		}
		store.err = nil
	}
	tests := map[string]struct {
		happens func(*testing.T, *evidence.Monitor, *probed)
		want    error
		probes  int
	}{
		"one answer": {lost, nil, 2},
		"two answers, as of a store that is down": {func(t *testing.T, m *evidence.Monitor, s *probed) {
			lost(t, m, s)
			lost(t, m, s)
			pass(30 * time.Second)
		}, errFull, 1},
		// The store takes probes and no records: each record would be followed by a probe.
		"another answer, after the probe that doubted the first": {func(t *testing.T, m *evidence.Monitor, s *probed) {
			lost(t, m, s)
			_ = m.Ready(t.Context()) // the probe
			lost(t, m, s)
			pass(30 * time.Second)
		}, errFull, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &probed{}
				m := evidence.NewMonitor(store, evidence.ProbeInterval, time.Now)
				if err := m.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				test.happens(t, m, store)
				if err := m.Ready(t.Context()); !errors.Is(err, test.want) || store.probes != test.probes {
					t.Errorf("ready answers %v after %d probes, want %v after %d", err, store.probes, test.want, test.probes)
				}
			})
		})
	}
}

func pass(d time.Duration) { <-time.After(d) }

func TestWhatAnswersAboutTheNextRecord(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	create := func(ctx context.Context, err error) func(*evidence.Monitor, *probed) {
		return func(m *evidence.Monitor, p *probed) {
			p.err = err
			_ = m.Create(ctx, "a/1", nil) // what it answers is the question
		}
	}
	tests := map[string]struct {
		happens func(*evidence.Monitor, *probed)
		want    error
		known   bool
	}{
		"nothing, at first":        {func(*evidence.Monitor, *probed) {}, nil, false},
		"a record that is written": {create(t.Context(), nil), nil, true},
		"two records that are not": {func(m *evidence.Monitor, p *probed) {
			create(t.Context(), errFull)(m, p)
			create(t.Context(), errFull)(m, p)
		}, errFull, true},
		"not a name that is taken":              {create(t.Context(), fmt.Errorf("a/1: %w", evidence.ErrExists)), nil, false},
		"not a call that the end of it cut off": {create(canceled, context.Canceled), nil, false},
		"though a record that was written then": {create(canceled, nil), nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := &probed{}
			m := evidence.NewMonitor(store, time.Minute, time.Now)
			test.happens(m, store)
			answer, known := m.Last()
			if known != test.known || !errors.Is(answer.Err, test.want) || (test.want == nil) != (answer.Err == nil) {
				t.Errorf("the last answer is %+v, %t", answer, known)
			}
			store.err = nil
			if err := m.Ready(t.Context()); !errors.Is(err, test.want) || store.probes != map[bool]int{true: 0, false: 1}[known] {
				t.Errorf("ready answers %v after %d probes", err, store.probes)
			}
		})
	}
}

// All callers wait for one probe, and share its answer.
func TestManyCallersShareOneProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &probed{}
		slow := evidence.NewMonitor(slowly{store}, time.Minute, time.Now)
		began := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := slow.Ready(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if store.probes != 1 || time.Since(began) != 5*time.Second {
			t.Errorf("%d probes in %s", store.probes, time.Since(began))
		}
	})
}

// slowly answers after five seconds.
type slowly struct{ evidence.Store }

func (s slowly) Ready(ctx context.Context) error {
	pass(5 * time.Second)
	return s.Store.Ready(ctx)
}

func TestAMonitorIsAStore(t *testing.T) {
	storetest.Contract(t, func(*testing.T) evidence.Store {
		return evidence.NewMonitor(&storetest.Memory{}, 0, time.Now)
	})
}
