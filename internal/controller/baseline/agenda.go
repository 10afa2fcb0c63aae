// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// appointment is what the checks of one object depend on, as its last
// reconciliation found it.
type appointment struct {
	timing      resync.Timing // but for failures and requests
	environment string
	// observed is what the Baseline tells of the object.
	observed v1alpha1.ObservedState
	// request is the value of a request that no check has answered; empty if none.
	request string
	// settled is what the Baseline and the object say against a check, but for a
	// claim, which holds only as long as its plan.
	settled resync.Obstacle
	claim   string
	recheck time.Duration
}

// answer is what a check found.
type answer struct {
	at time.Time
	// request is the request that it answers, empty if there was none.
	request string
	// differs: the object is not what the Baseline tells.
	differs bool
}

// agendaEntry is one guarded object of the agenda.
type agendaEntry struct {
	appointment
	due resync.Due
	// requestedAt is when the request was first seen.
	requestedAt time.Time
	failures    int
	failedAt    time.Time
	// obstacle is why a check that is due did not start, and notBefore is when it is
	// looked at again.
	obstacle  resync.Obstacle
	notBefore time.Time
	// running: a check goes on. It has ended when its answer is in the Baseline.
	running bool
	answer  *answer
}

// agenda is when each guarded object is checked next, and which checks go on. All
// of it can be made anew from the Baselines but the failures; a restart forgets
// them, and the first check after it is no earlier for that.
type agenda struct {
	mu      sync.Mutex
	entries map[kube.Key]*agendaEntry
	// wake is told when something may start earlier than was planned.
	wake chan struct{}
}

func newAgenda() *agenda {
	return &agenda{entries: map[kube.Key]*agendaEntry{}, wake: make(chan struct{}, 1)}
}

// note takes what a reconciliation found.
func (a *agenda) note(key kube.Key, found appointment, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil {
		e = &agendaEntry{}
		a.entries[key] = e
	}
	if found.request != e.request {
		e.requestedAt = now
	}
	if e.claim != "" && found.claim == "" {
		a.makeRoom() // a remediation ended
	}
	e.appointment = found
	// Whatever held it back may be over; who has no room is told so again.
	e.obstacle, e.notBefore = resync.ObstacleNone, time.Time{}
	e.plan(now)
	if e.due.By(now) && !e.running {
		a.rouse()
	}
}

// plan finds when an entry is due. A request is answered when its value is in the
// Baseline, and not by a time: a change that came meanwhile is no check.
func (e *agendaEntry) plan(now time.Time) {
	t := e.timing
	t.Failures, t.FailedAt, t.Now = e.failures, e.failedAt, now
	e.due = resync.NextCheck(t)
	if e.request == "" {
		return
	}
	asked := resync.NextCheck(resync.Timing{
		UID: t.UID, Failures: t.Failures, FailedAt: t.FailedAt, Now: now,
		// NextCheck waits for the second after, for the sake of stored times.
		Requested: e.requestedAt.Add(-time.Second),
	})
	if e.due.At.IsZero() || asked.At.Before(e.due.At) {
		e.due = asked
	}
}

// forget takes an object off that is not guarded any more.
func (a *agenda) forget(key kube.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[key]; e != nil && e.running {
		a.makeRoom()
	}
	delete(a.entries, key)
}

// answerOf is what a check has found and the Baseline does not tell yet.
func (a *agenda) answerOf(key kube.Key) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[key]; e != nil {
		return e.answer
	}
	return nil
}

// failuresOf is how many checks of an object have failed in a row.
func (a *agenda) failuresOf(key kube.Key) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[key]; e != nil {
		return e.failures
	}
	return 0
}

// told ends a check: what it found is in the Baseline.
func (a *agenda) told(key kube.Key, what *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || what == nil || e.answer != what {
		return
	}
	e.running, e.answer = false, nil
	e.failures, e.failedAt = 0, time.Time{}
	// What the Baseline says is noted a moment later; until then it must not look
	// as due as before, or the same check is made again.
	e.timing.LastCheck = what.at
	e.plan(what.at)
	a.makeRoom()
}

// begin counts a check before it starts.
func (a *agenda) begin(key kube.Key) (observed v1alpha1.ObservedState, request string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || e.running {
		return v1alpha1.ObservedState{}, "", false
	}
	e.running, e.obstacle = true, resync.ObstacleNone
	return e.observed, e.request, true
}

// found takes what a check has read; the next reconciliation tells it.
func (a *agenda) found(key kube.Key, reading Reading, request string) (differs, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || !e.running {
		return false, false
	}
	e.answer = &answer{at: reading.At, request: request, differs: !tells(e.observed, reading)}
	return e.answer.differs, true
}

// failed ends a check that could not be made, or whose answer nobody took.
func (a *agenda) failed(key kube.Key, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || !e.running {
		return
	}
	e.running, e.answer = false, nil
	e.failures, e.failedAt = e.failures+1, now
	e.plan(now)
	a.makeRoom()
}

// makeRoom has those looked at again that found no room.
func (a *agenda) makeRoom() {
	for _, e := range a.entries {
		switch e.obstacle {
		case resync.ObstacleThreshold, resync.ObstacleEnvironmentThreshold:
			e.notBefore = time.Time{}
		default:
		}
	}
	a.rouse()
}

func (a *agenda) rouse() {
	select {
	case a.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// tells says whether a Baseline tells what was read.
func tells(observed v1alpha1.ObservedState, reading Reading) bool {
	if reading.Object == nil {
		return observed.Hash == specguard.HashAbsent
	}
	return observed.UID == string(reading.Object.UID) && observed.FullHash == string(reading.Object.FullHash)
}
