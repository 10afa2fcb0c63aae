// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const secondsPerDay = 24 * 60 * 60

// timeOfDay is what a clock on the wall shows, in seconds since 00:00, below
// 86,400. Whole seconds are enough: all bounds are minutes, all offsets of zones
// are seconds.
type timeOfDay int64

// String is "HH:MM".
func (t timeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t/3600, t/60%60) }

// parseTimeOfDay reads "HH:MM" and nothing else: what can be written in one way
// is never read in two.
func parseTimeOfDay(text string, path *field.Path) (timeOfDay, *field.Error) {
	var digits [4]timeOfDay
	if len(text) == len("2:00") && text[1] == ':' {
		return 0, field.Invalid(path, text, fmt.Sprintf("write the hour with two digits: %q", "0"+text))
	}
	if len(text) != len("02:00") || text[2] != ':' {
		return 0, malformed(text, path)
	}
	for i, at := range [4]int{0, 1, 3, 4} {
		if text[at] < '0' || text[at] > '9' {
			return 0, malformed(text, path)
		}
		digits[i] = timeOfDay(text[at] - '0')
	}
	hours, minutes := digits[0]*10+digits[1], digits[2]*10+digits[3]
	switch {
	case text == "24:00":
		return 0, field.Invalid(path, text, `midnight is "00:00"; as an end it is the one that follows the start`)
	case hours > 23:
		return 0, field.Invalid(path, text, "hours are 00 to 23")
	case minutes > 59:
		return 0, field.Invalid(path, text, "minutes are 00 to 59")
	}
	return hours*3600 + minutes*60, nil
}

func malformed(text string, path *field.Path) *field.Error {
	return field.Invalid(path, text, `write hours and minutes of a day of 24 hours, as in "02:00" or "18:30"`)
}

// span is the part of a day from start to end by the clock on the wall, without
// the end. Start and end differ; a start after the end crosses midnight.
type span struct{ start, end timeOfDay }

// String is "02:00-06:00".
func (s span) String() string { return s.start.String() + "-" + s.end.String() }

func (s span) overnight() bool { return s.start > s.end }

func (s span) holds(t timeOfDay) bool {
	if s.overnight() {
		return t >= s.start || t < s.end
	}
	return t >= s.start && t < s.end
}

// beganDayBefore tells whether a time inside belongs to a span that began on the
// day before: the morning part of a night.
func (s span) beganDayBefore(t timeOfDay) bool { return s.overnight() && t < s.end }

// meets tells whether a time of day lies in both. Both begin with a start, so if
// they share a time, one of them starts inside the other.
func (s span) meets(other span) bool { return s.holds(other.start) || other.holds(s.start) }
