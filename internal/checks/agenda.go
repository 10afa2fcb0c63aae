// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// Appointment has the facts that the checks of one object depend on, as the last
// reconciliation of the object found them.
type Appointment struct {
	// Timing is without failures and requests, which the agenda adds.
	Timing resync.Timing
	// Environment names the object's Environment; empty without one.
	Environment string
	// Told is the version of the object in its Baseline.
	Told Told
	// Request is the value of a request that no check has answered; empty without one.
	Request string
	// Settled is the obstacle that the Baseline and the object name, except a claim,
	// which holds only as long as its plan.
	Settled resync.Obstacle
	// Claim names the plan that claims the object; empty without one.
	Claim string
	// Recheck is the time after which an obstacle is looked at again.
	Recheck time.Duration
}

// Told is the version of an object that its Baseline tells of.
type Told struct {
	// UID is the UID of the object.
	UID string
	// Hash is its guarded hash, and FullHash is the hash of its whole body.
	Hash, FullHash string
}

// Answer is the result of a check.
type Answer struct {
	// At is when the object was read.
	At time.Time
	// Request is the request that the check answers; empty without one.
	Request string
	// Differs tells that the object differs from its Baseline.
	Differs bool
}

// agendaEntry is one guarded object of the agenda.
type agendaEntry struct {
	Appointment
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
	answer  *Answer
}

// Agenda is when each guarded object is checked next, and which checks go on. All
// of it can be made anew from the Baselines but the failures; a restart forgets
// them, and the first check after it is no earlier for that.
type Agenda struct {
	mu      sync.Mutex
	entries map[kube.Key]*agendaEntry
	// wake is told when something may start earlier than was planned.
	wake chan struct{}
}

// NewAgenda returns an agenda without objects.
func NewAgenda() *Agenda {
	return &Agenda{entries: map[kube.Key]*agendaEntry{}, wake: make(chan struct{}, 1)}
}

// Note takes the result of a reconciliation.
func (a *Agenda) Note(key kube.Key, found Appointment, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil {
		e = &agendaEntry{}
		a.entries[key] = e
	}
	if found.Request != e.Request {
		e.requestedAt = now
	}
	if e.Claim != "" && found.Claim == "" {
		a.makeRoom() // a remediation ended
	}
	e.Appointment = found
	// An obstacle may be over. An object without room is told so again.
	e.obstacle, e.notBefore = resync.ObstacleNone, time.Time{}
	e.plan(now)
	if e.due.By(now) && !e.running {
		a.rouse()
	}
}

// plan finds when an entry is due. A request is answered when its value is in the
// Baseline, and not by a time: a change that came meanwhile is no check.
func (e *agendaEntry) plan(now time.Time) {
	t := e.Timing
	t.Failures, t.FailedAt, t.Now = e.failures, e.failedAt, now
	e.due = resync.NextCheck(t)
	if e.Request == "" {
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

// Forget takes an object off that is not guarded any more.
func (a *Agenda) Forget(key kube.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[key]; e != nil && e.running {
		a.makeRoom()
	}
	delete(a.entries, key)
}

// AnswerOf returns the answer of a check that the Baseline does not have yet.
func (a *Agenda) AnswerOf(key kube.Key) *Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[key]; e != nil {
		return e.answer
	}
	return nil
}

// FailuresOf counts how many checks of an object have failed in a row.
func (a *Agenda) FailuresOf(key kube.Key) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.entries[key]; e != nil {
		return e.failures
	}
	return 0
}

// EndCheck ends a check whose answer is in the Baseline.
func (a *Agenda) EndCheck(key kube.Key, what *Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || what == nil || e.answer != what {
		return
	}
	e.running, e.answer = false, nil
	e.failures, e.failedAt = 0, time.Time{}
	// The reconciliation notes the Baseline a moment later. Until then the entry must not
	// be due as before, or the same check is made again.
	e.Timing.LastCheck = what.At
	e.plan(what.At)
	a.makeRoom()
}

// begin counts a check before it starts.
func (a *Agenda) begin(key kube.Key) (told Told, request string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || e.running {
		return Told{}, "", false
	}
	e.running, e.obstacle = true, resync.ObstacleNone
	return e.Told, e.Request, true
}

// found takes the reading of a check, which the next reconciliation tells.
func (a *Agenda) found(key kube.Key, reading Reading, request string) (differs, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil || !e.running {
		return false, false
	}
	e.answer = &Answer{At: reading.At, Request: request, Differs: !e.Told.is(reading)}
	return e.answer.Differs, true
}

// failed ends a check that could not be made, or whose answer no reconciliation took.
func (a *Agenda) failed(key kube.Key, now time.Time) {
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
func (a *Agenda) makeRoom() {
	for _, e := range a.entries {
		switch e.obstacle {
		case resync.ObstacleThreshold, resync.ObstacleEnvironmentThreshold:
			e.notBefore = time.Time{}
		default:
		}
	}
	a.rouse()
}

func (a *Agenda) rouse() {
	select {
	case a.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// is tells whether a Baseline has the version of a reading.
func (t Told) is(reading Reading) bool {
	if reading.Object == nil {
		return t.Hash == specguard.HashAbsent
	}
	return t.UID == string(reading.Object.UID) && t.FullHash == string(reading.Object.FullHash)
}
