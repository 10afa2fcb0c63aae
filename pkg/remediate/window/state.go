// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"time"
)

// horizon bounds the search for a change, in seconds: more than a year. Every schedule that Parse returns changes within three weeks,
// or never.
const horizon = 367 * secondsPerDay

// Forever is how long a schedule stays open that never closes.
const Forever = time.Duration(math.MaxInt64)

// State says whether a policy may act at one moment. Its times are whole seconds
// in the schedule's zone.
type State struct {
	// Open, if it may act.
	Open bool
	// Since when it has been so; zero if always.
	Since time.Time
	// Until when it will be so, the first moment at which it is not; zero if always.
	Until time.Time
	// Next opening after the moment; zero if there is none within a year. While
	// it is closed that is Until.
	Next time.Time
	// Blocks are the parts that keep it closed, in the order of the reasons.
	Blocks []Block
	// Why, for people, with the next change.
	Why string
}

// Reason why a policy may not act now.
type Reason string

// The reasons, in the order in which a State lists them.
const (
	ReasonNoSchedule          Reason = "NoSchedule"
	ReasonClockSkew           Reason = "ClockSkew"
	ReasonOutsideWindow       Reason = "OutsideMaintenanceWindow"
	ReasonDayNotAllowed       Reason = "DayNotAllowed"
	ReasonOutsideAllowedTimes Reason = "OutsideAllowedTimes"
)

// Block is a reason with a message for people.
type Block struct {
	Reason  Reason
	Message string
}

// At answers for one moment. A zero now is a clock that nobody has read, and a
// schedule that depends on it is then closed.
func (s Schedule) At(now time.Time) State {
	switch {
	case s.zone == nil:
		return blocked(Block{ReasonNoSchedule, "the schedule could not be read, and an unknown schedule allows no remediation"})
	case !s.TimeGated():
		return State{Open: true, Why: "may act at any time"}
	case now.IsZero():
		return blocked(Block{ReasonClockSkew, "the time is not known"})
	}
	at := now.Unix()
	w := stretchAt(s.zone, at).wall(at)
	g := s.judge(w)
	state := State{Open: g.open(), Blocks: s.blocks(g, w)}
	if since, ok := s.changeBefore(at, at-horizon); ok {
		state.Since = s.local(since)
	}
	if until, ok := s.changeAfter(at, at+horizon); ok {
		state.Until = s.local(until)
		state.Next = s.opening(state.Open, until)
	}
	state.Why = s.why(state, now)
	return state
}

// opening is the next one, given the next change.
func (s Schedule) opening(open bool, change int64) time.Time {
	if !open {
		return s.local(change)
	}
	if next, ok := s.changeAfter(change, change+horizon); ok {
		return s.local(next)
	}
	return time.Time{}
}

func (s Schedule) local(at int64) time.Time { return time.Unix(at, 0).In(s.zone) }

func blocked(b Block) State { return State{Blocks: []Block{b}, Why: b.Message} }

// Remaining is how long it stays open, in real time: 0 when it is closed, and
// [Forever] when it never closes. What takes longer does not fit any more.
func (s Schedule) Remaining(now time.Time) time.Duration {
	state := s.At(now)
	switch {
	case !state.Open:
		return 0
	case state.Until.IsZero():
		return Forever
	default:
		return state.Until.Sub(now)
	}
}
