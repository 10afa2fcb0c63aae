// SPDX-License-Identifier: Apache-2.0

package window

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// weekdays is a set of days, one bit each.
type weekdays uint8

const everyDay weekdays = 1<<7 - 1

func (d weekdays) has(day time.Weekday) bool { return d&(1<<day) != 0 }

// week in the order in which calendars of most zones show it (ISO 8601).
var week = [7]time.Weekday{
	time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday, time.Sunday,
}

// String lists the days from Monday on; three or more in a row are a range.
func (d weekdays) String() string {
	var parts []string
	for i := 0; i < len(week); i++ {
		if !d.has(week[i]) {
			continue
		}
		last := i
		for last+1 < len(week) && d.has(week[last+1]) {
			last++
		}
		if last-i >= 2 {
			parts = append(parts, short(week[i])+"-"+short(week[last]))
			i = last
			continue
		}
		parts = append(parts, short(week[i]))
	}
	return strings.Join(parts, ", ")
}

func short(day time.Weekday) string { return day.String()[:3] }

// parseWeekdays reads English names of days, as "Monday" or "monday". No list
// allows every day; an empty one would allow none, which nobody means.
func parseWeekdays(names []string, path *field.Path) (weekdays, field.ErrorList) {
	if names == nil {
		return everyDay, nil
	}
	if len(names) == 0 {
		return 0, field.ErrorList{field.Required(path, "name at least one day, or leave it out to allow every day")}
	}
	var days weekdays
	var errs field.ErrorList
	for i, name := range names {
		at := slices.IndexFunc(week[:], func(day time.Weekday) bool {
			return name == day.String() || name == strings.ToLower(day.String())
		})
		switch {
		case at < 0:
			errs = append(errs, field.NotSupported(path.Index(i), name, dayNames()))
		case days.has(week[at]):
			errs = append(errs, field.Duplicate(path.Index(i), name))
		default:
			days |= 1 << week[at]
		}
	}
	return days, errs
}

func dayNames() []string {
	names := make([]string, len(week))
	for i, day := range week {
		names[i] = day.String()
	}
	return names
}
