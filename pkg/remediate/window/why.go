// SPDX-License-Identifier: Apache-2.0

package window

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// instant shows day, time and zone: in an hour that clocks show twice, only the
// zone's abbreviation tells which one is meant.
const instant = "Mon 2006-01-02 15:04 MST"

// String is the schedule in a few words, such as
// "02:00-06:00 Europe/Berlin on Mon-Fri".
func (s Schedule) String() string {
	switch {
	case s.zone == nil:
		return "never"
	case !s.TimeGated():
		return "at any time"
	case s.outer() == nil:
		return s.days.String() + " " + s.zone.String()
	case s.window != nil && s.allowed != nil:
		return s.outerText() + ", within " + s.allowed.String()
	default:
		return s.outerText()
	}
}

// outerText is the part to which the days apply, with zone and days.
func (s Schedule) outerText() string {
	text := s.outer().String() + " " + s.zone.String()
	if s.days != everyDay {
		text += " on " + s.days.String()
	}
	return text
}

func (s Schedule) allowedText() string {
	if s.window != nil {
		return "the allowed times " + s.allowed.String() + " " + s.zone.String()
	}
	return "the allowed times " + s.outerText()
}

// blocks names each closed gate.
func (s Schedule) blocks(g gates, w wall) []Block {
	var out []Block
	if !g.window {
		out = append(out, Block{ReasonOutsideWindow, "outside the maintenance window " + s.outerText()})
	}
	if !g.day {
		out = append(out, Block{ReasonDayNotAllowed, s.dayText(w)})
	}
	if !g.allowed {
		out = append(out, Block{ReasonOutsideAllowedTimes, "outside " + s.allowedText()})
	}
	return out
}

func (s Schedule) dayText(w wall) string {
	day := s.dayOf(w)
	allowed := " (" + s.days.String() + " " + s.zone.String() + ")"
	if day != w.weekday {
		return "the night began on " + day.String() + ", which is not an allowed day" + allowed
	}
	return day.String() + " is not an allowed day" + allowed
}

// why joins what holds now with the next change.
func (s Schedule) why(state State, now time.Time) string {
	if state.Open {
		return s.openText() + "; " + change("closes", state.Until, now)
	}
	messages := make([]string, len(state.Blocks))
	for i, b := range state.Blocks {
		messages[i] = b.Message
	}
	return strings.Join(messages, ", and ") + "; " + change("opens", state.Until, now)
}

func (s Schedule) openText() string {
	var inside []string
	if s.window != nil {
		inside = append(inside, "the maintenance window "+s.outerText())
	}
	if s.allowed != nil {
		inside = append(inside, s.allowedText())
	}
	if len(inside) == 0 {
		return "an allowed day (" + s.days.String() + " " + s.zone.String() + ")"
	}
	return "inside " + strings.Join(inside, " and ")
}

// change says when, and in how long. Waiting is rounded up to whole seconds, so
// that what has not come yet is never in 0 s.
func change(verb string, at, now time.Time) string {
	if at.IsZero() {
		return "never " + verb
	}
	wait := at.Sub(now) + time.Second - 1
	return verb + " " + at.Format(instant) + " (in " + duration.HumanDuration(wait) + ")"
}
