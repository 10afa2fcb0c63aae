// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RequestTimeout bounds a write, at the client and at the API server.
const RequestTimeout = 10 * time.Second

// sendMargin is the time before a window closes in which the executor sends no request. A
// request may be stored after its time-out, by a clock that is five seconds behind.
const sendMargin = RequestTimeout + 5*time.Second

// outlived is how long after an intent its request can no longer be stored. It stands
// for a fence where there can be none: an object that is not there has no version to
// move, and a fence may be refused. Executors of two versions derive the time from one
// intent, so a later version may wait longer, and must not wait for less.
const outlived = time.Minute

// creatable is how long after its intent the API server admits a creation. It ends before
// outlived does: a creation that is admitted in the last second, by the clock of an API
// server that is behind, is stored within its time-out.
const creatable = outlived - sendMargin - time.Second

// NotAfter returns the last second in which the API server admits the creation that was
// intended at a time. A process may sleep between its decision and its request, for
// however long, so only the API server can hold a creation to a time.
func NotAfter(intended time.Time) time.Time {
	return intended.Add(creatable).Truncate(time.Second)
}

// LastSecond returns [NotAfter] of the intent of a step, or the last second of the window
// that is open now, if that is earlier.
func (s *State) LastSecond(index int32) time.Time {
	step := &s.Plan.Status.Steps[index]
	last := NotAfter(step.Intent.StorageTime.Time)
	if s.Facts.Brakes == nil || s.Facts.Brakes.ClosesAt.IsZero() || s.passes(step) {
		return last
	}
	if closes := s.Facts.Brakes.ClosesAt.Add(-time.Second).Truncate(time.Second); closes.Before(last) {
		return closes
	}
	return last
}

// outwait waits until a request of before cannot be stored any more, by the API server's
// time.
func (s *State) outwait(step *v1alpha1.PlanStep) Effect {
	if s.TimeUnknown {
		return s.untold()
	}
	until := step.Intent.StorageTime.Add(outlived)
	if s.Now.Before(until) {
		return Wait{Until: until, Why: "a request may still be under way"}
	}
	return nil
}

// untold waits until an answer of the API server tells its time.
func (s *State) untold() Effect { return s.wait(again, "the time of the API server is not known") }

// makes says that a step makes its target.
func (s *State) makes(step *v1alpha1.PlanStep) bool { return s.target(step).UID == "" }

// tooLate says that the API server no longer admits the creation that a step intended.
func (s *State) tooLate(step *v1alpha1.PlanStep) bool {
	return s.makes(step) && !s.TimeUnknown && s.Now.After(s.LastSecond(step.Index))
}
