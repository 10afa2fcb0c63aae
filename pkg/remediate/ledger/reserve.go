// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Verdict on a request.
type Verdict struct {
	// Granted says that the step may write, once the state beside it is stored.
	Granted bool
	// Entry is what the ledger already had of the step; nil when it is new or
	// refused. One that has ended means that the step has too.
	Entry *v1alpha1.LedgerEntry
	// Refused is the first closed gate; zero when granted.
	Refused Gate
}

// Begin is the first state of a ledger. One that follows another, or whose past
// nobody knows, grants nothing for the longest period that a limit looks back.
func Begin(now time.Time, pastKnown bool) Status {
	s := Status{Sequence: 1}
	if !pastKnown {
		from := stored(now.Add(day))
		s.GrantStartTime = &from
	}
	return s
}

// Trust lets a ledger grant although it does not know its past: a person said so.
func Trust(s *Status) (*Status, bool) {
	if s.GrantStartTime == nil {
		return s, false
	}
	next := changed(s)
	next.GrantStartTime = nil
	return next, true
}

// Reserve grants a request or refuses it. The state that is returned is to be
// stored before the step goes on; it is the one given when nothing changed.
//
// A step that has an entry is granted again, which is a change: a release that an earlier
// decision has sent may still be under way, and is bound to the state before.
func Reserve(s *Status, r Request, rules Rules, now time.Time) (*Status, Verdict) {
	if e := Find(s, r.Step); e != nil {
		return grantAgain(s, e, r)
	}
	for _, gate := range Gates(s, r, rules, now) {
		if !gate.Open {
			return s, Verdict{Refused: gate}
		}
	}
	next := changed(s)
	next.Entries = pruned(next.Entries, now)
	forgetIdle(next)
	next.Entries = append(next.Entries, v1alpha1.LedgerEntry{
		StepReference: r.Step, PolicyUID: r.PolicyUID, TargetUID: r.TargetUID, Epoch: r.Epoch,
		FailureThreshold: rules.Policy.FailureThreshold, VerdictTimeoutSeconds: secondsOf(rules.Policy.VerdictTimeout),
		ReservationTime: metav1.NewTime(now.Truncate(time.Second)),
	})
	probe(next, r)
	return next, Verdict{Granted: true}
}

// grantAgain grants a step that has an entry, unless that has ended. An executor of an
// earlier epoch changes nothing: what it decides is not stored any more.
func grantAgain(s *Status, e *v1alpha1.LedgerEntry, r Request) (*Status, Verdict) {
	if e.CompletionTime != nil || e.Epoch > r.Epoch {
		return s, Verdict{Granted: e.CompletionTime == nil, Entry: e}
	}
	next := changed(s)
	Find(next, r.Step).Epoch = r.Epoch
	return next, Verdict{Granted: true, Entry: e}
}

// Settle says how a granted step ended that may have written. It changes nothing
// the second time, nor for a step the ledger does not know.
func Settle(s *Status, step Step, outcome v1alpha1.LedgerOutcome, now time.Time) (*Status, bool) {
	e := Find(s, step)
	if e == nil || e.CompletionTime != nil {
		return s, false
	}
	next := changed(s)
	e = Find(next, step)
	at := stored(now)
	e.CompletionTime, e.Outcome = &at, outcome
	switch outcome {
	case v1alpha1.LedgerSucceeded:
		succeeded(next, e, at)
	case v1alpha1.LedgerStopped:
		unprobe(next, e)
	case v1alpha1.LedgerFailed:
		failed(next, e, at)
	default:
		e.Outcome = v1alpha1.LedgerFailed // an outcome that nobody knows is none to build on
		failed(next, e, at)
	}
	return next, true
}

// Release takes back the entry of a step that has written nothing under it. It changes
// nothing when the step was granted again in a later epoch than the one of the decision.
func Release(s *Status, step Step, epoch int64) (*Status, bool) {
	e := Find(s, step)
	if e == nil || e.CompletionTime != nil || e.Epoch > epoch {
		return s, false
	}
	next := changed(s)
	unprobe(next, Find(next, step))
	next.Entries = slices.DeleteFunc(next.Entries, func(e v1alpha1.LedgerEntry) bool { return same(e.StepReference, step) })
	return next, true
}

// reopensAt is when so many of the entries that have ended count no more that a
// limit has room; zero when that needs one to end first.
func reopensAt(s *Status, limit int32, period time.Duration, now time.Time, of func(*v1alpha1.LedgerEntry) bool) time.Time {
	var ends []time.Time
	unended := int32(0)
	for i := range s.Entries {
		switch e := &s.Entries[i]; {
		case !of(e) || !counts(e, period, now):
		case e.CompletionTime == nil:
			unended++
		default:
			ends = append(ends, e.CompletionTime.Add(period))
		}
	}
	if unended >= limit {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	// After the first k have gone there are len-k left, and limit-1 may be.
	return ends[int32(len(ends))+unended-limit] //nolint:gosec // at most maxEntries
}
