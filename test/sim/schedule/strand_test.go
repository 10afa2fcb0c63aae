// SPDX-License-Identifier: Apache-2.0

package schedule_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-dev/plumbline/test/sim/schedule"
)

// ask sends a message of a worker.
func ask(ctx context.Context, l *schedule.Life, what string) {
	_, _ = schedule.Call(ctx, l, schedule.Message{What: what}, func() (int, error) { return 0, nil }) // whatever comes of it
}

// All workers wake at the same moment, and write what they have without a lock.
func TestWorkersOfALifeTakeTurns(t *testing.T) {
	var first []int
	for range 20 {
		var order []int
		synctest.Test(t, func(*testing.T) {
			s := schedule.New(5)
			s.Spawn("process", func(l *schedule.Life) {
				work := func(id int) func(*schedule.Strand) {
					return func(w *schedule.Strand) {
						for range 4 {
							w.Await(nil, time.Second)
							order = append(order, id)
							ask(w.Context(), l, "ask")
							order = append(order, id)
						}
					}
				}
				l.Fork(work(0), work(1), work(2))
			})
			s.Run(100, nil)
			s.Stop()
		})
		if first == nil {
			first = order
		}
		if len(order) != 24 || !slices.Equal(order, first) {
			t.Fatalf("the workers went on in the order %v, and before in the order %v", order, first)
		}
	}
}

func TestWorkersOfALifeDieAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := schedule.New(7)
		begun, ended := 0, 0
		s.Spawn("process", func(l *schedule.Life) {
			work := func(w *schedule.Strand) {
				begun++
				ask(w.Context(), l, "ask")
				w.Await(nil, time.Hour)
				ended++
			}
			l.Fork(work, work)
		})
		s.Disturb(schedule.Chances{Crash: 1000})
		s.Run(1, nil)
		s.Disturb(schedule.Chances{})
		s.Run(100, nil)
		s.Stop()
		if begun != 4 || ended != 2 {
			t.Errorf("%d workers began and %d ended, want 4 and 2; %v", begun, ended, s.Trace())
		}
	})
}

// A worker that has a lock goes on alone until it asks without the lock.
func TestAWorkerWithALockGoesOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := schedule.New(9)
		locked, wrong, others := false, false, 0
		s.Spawn("process", func(l *schedule.Life) {
			l.Fork(func(w *schedule.Strand) {
				locked = true
				ask(schedule.Alone(w.Context()), l, "first")
				l.Linger(schedule.Alone(w.Context()), time.Minute)
				ask(schedule.Alone(w.Context()), l, "last")
				locked = false
				ask(w.Context(), l, "without")
			}, func(w *schedule.Strand) {
				for range 5 {
					wrong = wrong || locked
					others++
					ask(w.Context(), l, "other")
				}
			})
		})
		s.Run(100, nil)
		s.Stop()
		if wrong || others != 5 {
			t.Errorf("the other worker went on %d times, and beside the lock: %v; %v", others, wrong, s.Trace())
		}
	})
}
