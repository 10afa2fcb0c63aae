// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Timing is what the next check of an object depends on. Times are taken to the
// whole second, as the API stores them: before and after a restart they are the
// same.
type Timing struct {
	// UID of the object; it spreads the objects.
	UID string
	// Period between two checks; 0 or less is off.
	Period time.Duration
	// LastCheck is when the object was last compared (status.lastCheckTime).
	LastCheck time.Time
	// LastChange is when its guarded content was last seen to change, by
	// whomever; LastCorrection when Plumbline last put it back. Zero is never.
	LastChange, LastCorrection time.Time
	// Stored is the due time in the Baseline (status.nextCheckTime); zero if none.
	Stored time.Time
	// Requested is when somebody asked for a check; zero if nobody did. A time to
	// come asks for a check then.
	Requested time.Time
	// Failures counts the checks that failed since the last one that did not, and
	// FailedAt is when the last of them did.
	Failures int
	FailedAt time.Time
	Now      time.Time
}

// Basis is what a due time rests on.
type Basis string

// The bases.
const (
	// BasisOff: there is no scheduled check.
	BasisOff Basis = "Off"
	// BasisNeverChecked: nothing is known to have happened to it; it is due now.
	BasisNeverChecked Basis = "NeverChecked"
	// BasisLastOperation: a period, and up to a fifth of it, after the last
	// operation.
	BasisLastOperation Basis = "LastOperation"
	// BasisClockWentBack: all that is known of it lies in the future.
	BasisClockWentBack Basis = "ClockWentBack"
	// BasisRequested: somebody asked.
	BasisRequested Basis = "Requested"
	// BasisBackoff: the last check failed.
	BasisBackoff Basis = "Backoff"
)

// Due is when an object is checked next.
type Due struct {
	// At is zero when it never is.
	At    time.Time
	Basis Basis
}

// By tells whether the check is due at a time.
func (d Due) By(now time.Time) bool { return !d.At.IsZero() && !d.At.After(now) }

// jitterShare: the jitter is up to a period divided by this.
const jitterShare = 5

// NextCheck finds when an object is due. Store the result as nextCheck.
//
// Scheduled checks count from the last operation, whatever it was: somebody who
// changed an object, or put it back, has just seen to it. To the period comes a
// jitter of up to a fifth, never a negative one, so that the check is not early;
// it spreads what happened at the same moment, as at an installation. It follows
// from the uid and the last operation alone. So it is drawn once per operation,
// and a restart, a new leader or a lost nextCheck gives the same time again.
//
// A stored due time stands as long as it lies one to 1.2 periods after the last
// operation; after a change of the period it does not, and a new one is made. If
// the clock went back, the check is at most one period away.
func NextCheck(t Timing) Due {
	t.toSeconds()
	due := t.afterFailure(t.scheduled())
	at, asked := t.requested()
	if !asked {
		return due
	}
	request := Due{at, BasisRequested}
	if !at.After(t.FailedAt) {
		request = t.afterFailure(request)
	}
	if due.At.IsZero() || request.At.Before(due.At) {
		return request
	}
	return due
}

func (t *Timing) toSeconds() {
	for _, at := range []*time.Time{&t.LastCheck, &t.LastChange, &t.LastCorrection, &t.Stored, &t.FailedAt} {
		*at = at.Truncate(time.Second)
	}
}

func (t *Timing) scheduled() Due {
	last := t.lastOperation()
	switch {
	case t.Period <= 0:
		return Due{Basis: BasisOff}
	case last.IsZero():
		return Due{t.sinceFirstAsked(), BasisNeverChecked}
	case last.After(t.Now):
		return Due{t.afterClockWentBack(last), BasisClockWentBack}
	}
	earliest := last.Add(t.Period)
	if !t.Stored.Before(earliest) && !t.Stored.After(earliest.Add(t.Period/jitterShare)) {
		return Due{t.Stored, BasisLastOperation}
	}
	return Due{earliest.Add(jitter(t.UID, last, t.Period)), BasisLastOperation}
}

// sinceFirstAsked keeps the place in the queue of an object that waits for its
// first check. Due now, and now again with every look, it would be the last of all
// for ever.
func (t *Timing) sinceFirstAsked() time.Time {
	if t.Stored.IsZero() || t.Stored.After(t.Now) {
		return t.Now
	}
	return t.Stored
}

// lastOperation is the last thing that happened to the object. What lies in the
// future has not happened by this clock; it counts only if there is nothing else,
// or a check that was made after the clock went back would not end the wait.
func (t *Timing) lastOperation() time.Time {
	var past, future time.Time
	for _, at := range []time.Time{t.LastCheck, t.LastChange, t.LastCorrection} {
		if at.After(t.Now) {
			future = later(future, at)
		} else {
			past = later(past, at)
		}
	}
	if past.IsZero() {
		return future
	}
	return past
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// afterClockWentBack promises a check within a period, and before the clock has
// caught up with the last operation: from then on the period would be counted once
// more from there. Half of that way leaves room for a check that has to wait for a
// free slot. A promise that is stored is kept: counted from now anew with every
// look, it would never come. The jitter is taken off, so that not all objects are
// due at the same moment.
func (t *Timing) afterClockWentBack(last time.Time) time.Time {
	if !t.Stored.IsZero() && !t.Stored.After(t.Now.Add(t.Period)) && t.Stored.Before(last) {
		return t.Stored
	}
	wait := min(t.Period-jitter(t.UID, last, t.Period), last.Sub(t.Now)/2)
	return t.Now.Add(wait).Truncate(time.Second)
}

// requested is when a check was asked for, unless it was made since. A second is
// waited: times are stored without their fractions, and a check earlier in the
// same second is no answer. After a failure a request that came later does not
// wait: whoever asks may know that the cause is gone.
func (t *Timing) requested() (time.Time, bool) {
	if t.Requested.IsZero() {
		return time.Time{}, false
	}
	at := t.Requested.Truncate(time.Second).Add(time.Second)
	answered := !t.LastCheck.After(t.Now) && !t.LastCheck.Before(at)
	return at, !answered
}

// afterFailure holds a check back for a while after one that failed.
func (t *Timing) afterFailure(due Due) Due {
	if t.Failures <= 0 || due.At.IsZero() || t.FailedAt.IsZero() || t.FailedAt.After(t.Now) {
		return due
	}
	retry := t.FailedAt.Add(Backoff(t.UID, t.Failures, t.FailedAt, t.Period))
	if retry.After(due.At) {
		return Due{retry, BasisBackoff}
	}
	return due
}

// jitter is a whole number of seconds from 0 to a fifth of the period; none for a
// period under 5 s. A hash of uid and time takes the place of a random number,
// which would have to be remembered.
func jitter(uid string, at time.Time, period time.Duration) time.Duration {
	span := uint64(period / jitterShare / time.Second)
	// The number has a fixed length and comes first, so that no two pairs of
	// arguments hash the same text.
	text := binary.BigEndian.AppendUint64(nil, uint64(at.Unix()))
	sum := sha256.Sum256(append(text, uid...))
	return time.Duration(binary.BigEndian.Uint64(sum[:])%(span+1)) * time.Second
}
