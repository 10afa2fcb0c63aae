// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"fmt"
	"time"
)

// Worker is a process of nginx that answers requests.
type Worker struct {
	PID int
	// Started tells a worker from a later one with its PID, in ticks since the start of the machine.
	Started uint64
}

// State is what the system says of a worker.
type State struct {
	Worker
	// Leaving says that the worker closed its sockets, and accepts no connection.
	Leaving bool
	// Stopped says that the worker does not run now (SIGSTOP), so none of its timers do.
	Stopped bool
}

// OutOfSync is a worker, or the whole program, that may not decide by the files.
type OutOfSync struct {
	// PID is 0 where it is the program.
	PID int
	// Why says what is missing.
	Why error
}

func (o OutOfSync) String() string {
	if o.PID == 0 {
		return fmt.Sprintf("nginx: %v", o.Why)
	}
	return fmt.Sprintf("worker %d: %v", o.PID, o.Why)
}

// Reasons of a worker of before a reload.
var (
	ErrAccepts = errors.New("it has files of before, and accepts connections")
	ErrStopped = errors.New("it has files of before, and is stopped")
	ErrKept    = errors.New("it has files of before, and may keep connections on which it answers a request")
)

// Leavers has the time at which each worker of before a reload was first seen without sockets, while it
// ran.
type Leavers map[Worker]time.Time

// JudgeWorkers lists workers of before the last reload that may still decide a request, and returns since
// when they are known to leave. A worker that leaves keeps an idle connection for keepaliveMin at most, and
// closes it behind its next request; decided is the beginning of the last request that a line says was
// decided by a sequence of before. So a worker decides none when keepaliveMin has passed since it left and
// since decided. It may live longer, as long as its last request.
func JudgeWorkers(now time.Time, old map[Worker]bool, states []State, since Leavers, decided time.Time, keepaliveMin time.Duration) ([]OutOfSync, Leavers) {
	var late []OutOfSync
	next := Leavers{}
	for _, s := range states {
		if !old[s.Worker] {
			continue
		}
		left, known := since[s.Worker]
		switch {
		case !s.Leaving:
			late = append(late, OutOfSync{s.PID, ErrAccepts})
			continue
		case s.Stopped:
			late = append(late, OutOfSync{s.PID, ErrStopped})
			continue
		case !known:
			left = now
		}
		next[s.Worker] = left
		if last := later(left, decided); now.Sub(last) < keepaliveMin+margin {
			late = append(late, OutOfSync{s.PID, ErrKept})
		}
	}
	return late, next
}

// margin is for the timers of nginx, which go by milliseconds, and for a busy machine.
const margin = 500 * time.Millisecond

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
