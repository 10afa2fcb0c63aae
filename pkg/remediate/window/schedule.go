// SPDX-License-Identifier: Apache-2.0

package window

import "time"

// Schedule is a [Spec] made ready for use; immutable. The zero Schedule, which
// nobody has read, is never open.
type Schedule struct {
	zone    *time.Location // nil only in the zero Schedule
	window  *span          // nil: the whole day
	allowed *span          // nil: the whole day
	days    weekdays
	breaks  []timeOfDay
}

// TimeGated tells whether it is ever closed. What is not time-gated does not
// depend on any clock.
func (s Schedule) TimeGated() bool {
	return s.zone == nil || s.window != nil || s.allowed != nil || s.days != everyDay
}

// outer is the part to which the allowed days apply: the window, or else the
// allowed times, or nil for the whole day. Only one of the two can carry the
// days: a night window that began on an allowed Friday shall not be cut at
// midnight by allowed times that begin on Saturday.
func (s Schedule) outer() *span {
	if s.window != nil {
		return s.window
	}
	return s.allowed
}

// gates are the parts of a schedule, true where they let pass.
type gates struct{ window, day, allowed bool }

func (g gates) open() bool { return g.window && g.day && g.allowed }

// judge one moment by the clock on the wall. Outside the part to which the days
// apply there is no day to ask for, and the gate of the day is open.
func (s Schedule) judge(w wall) gates {
	g := gates{
		window:  s.window == nil || s.window.holds(w.at),
		allowed: s.allowed == nil || s.allowed.holds(w.at),
	}
	outer := s.outer()
	g.day = outer != nil && !outer.holds(w.at) || s.days.has(s.dayOf(w))
	return g
}

// dayOf is the day that counts: of a night, the one on which it began.
func (s Schedule) dayOf(w wall) time.Weekday {
	if outer := s.outer(); outer != nil && outer.beganDayBefore(w.at) {
		return (w.weekday + 6) % 7
	}
	return w.weekday
}

// changeAfter is the first second after the given one at which the answer
// changes, looked for up to the limit; both in Unix time.
func (s Schedule) changeAfter(at, limit int64) (int64, bool) {
	run := stretchAt(s.zone, at)
	was := s.judge(run.wall(at)).open()
	for at < limit {
		at = s.breakAfter(run, at)
		if !run.holds(at) {
			run = stretchAt(s.zone, at)
		}
		if s.judge(run.wall(at)).open() != was {
			return at, true
		}
	}
	return 0, false
}

// changeBefore is the last second, the given one included, at which the answer
// became what it is, looked for back to the limit.
func (s Schedule) changeBefore(at, limit int64) (int64, bool) {
	run := stretchAt(s.zone, at)
	is := s.judge(run.wall(at)).open()
	for at > limit {
		since := s.breakUpTo(run, at)
		at = since - 1
		if !run.holds(at) {
			run = stretchAt(s.zone, at)
		}
		if s.judge(run.wall(at)).open() != is {
			return since, true
		}
	}
	return 0, false
}

// breakAfter is the next second at which the answer may change: the next break
// of the day, the next midnight, or the end of the stretch.
func (s Schedule) breakAfter(run stretch, at int64) int64 {
	shown := run.wall(at).at
	next := timeOfDay(secondsPerDay)
	for _, b := range s.breaks {
		if b > shown {
			next = b
			break
		}
	}
	return min(at+int64(next-shown), run.to)
}

// breakUpTo is the last such second, the given one included.
func (s Schedule) breakUpTo(run stretch, at int64) int64 {
	shown := run.wall(at).at
	var last timeOfDay
	for _, b := range s.breaks {
		if b <= shown {
			last = b
		}
	}
	return max(at-int64(shown-last), run.from)
}
