// SPDX-License-Identifier: Apache-2.0

package window

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Spec is a schedule as a person writes it. Without any part a policy may act at
// any time.
type Spec struct {
	// MaintenanceWindow, a part of each allowed day; nil is all of it.
	MaintenanceWindow *MaintenanceWindow
	// AllowedDays are English names, "Monday" or "monday"; nil allows every day.
	// A window that crosses midnight belongs to the day on which it begins.
	AllowedDays []string
	// AllowedStart and AllowedEnd, "HH:MM", narrow the window, or stand alone in
	// UTC. Both or neither; a start after the end crosses midnight.
	AllowedStart, AllowedEnd string
}

// MaintenanceWindow is a part of the day by the clocks of a zone.
type MaintenanceWindow struct {
	// Start and End, "HH:MM" from 00:00 to 23:59, the end being the first minute
	// outside. A start after the end crosses midnight. Without both it is the
	// whole day, and the window only says in which zone days and times are read.
	Start, End string
	// TimeZone is an IANA name such as "Europe/Berlin", or "UTC".
	TimeZone string
}

// Parse makes a schedule ready for use. The errors carry the path of the field,
// below path, and how to write it; a schedule with errors is never open. A nil
// load is [time.LoadLocation].
func Parse(spec Spec, path *field.Path, load ZoneLoader) (Schedule, field.ErrorList) {
	s := Schedule{zone: time.UTC}
	var errs, more field.ErrorList
	if w := spec.MaintenanceWindow; w != nil {
		s.zone, s.window, errs = parseWindow(*w, path.Child("maintenanceWindow"), load)
	}
	s.days, more = parseWeekdays(spec.AllowedDays, path.Child("allowedDays"))
	errs = append(errs, more...)
	s.allowed, more = parseSpan(spec.AllowedStart, spec.AllowedEnd, path.Child("allowedStart"), path.Child("allowedEnd"))
	errs = append(errs, more...)
	if s.window != nil && s.allowed != nil && !s.window.meets(*s.allowed) {
		errs = append(errs, field.Invalid(path.Child("allowedStart"), s.allowed.String(),
			"these times never meet the maintenance window "+s.window.String()+", so it would never open; leave out one of the two"))
	}
	if len(errs) > 0 {
		return Schedule{}, errs
	}
	s.breaks = s.dailyBreaks()
	return s, nil
}

func parseWindow(w MaintenanceWindow, path *field.Path, load ZoneLoader) (*time.Location, *span, field.ErrorList) {
	var errs field.ErrorList
	zone, err := loadZone(w.TimeZone, path.Child("timeZone"), load)
	if err != nil {
		errs = append(errs, err)
	}
	s, more := parseSpan(w.Start, w.End, path.Child("start"), path.Child("end"))
	return zone, s, append(errs, more...)
}

// parseSpan reads a start and an end; without both there is no span.
func parseSpan(start, end string, startPath, endPath *field.Path) (*span, field.ErrorList) {
	if start == "" && end == "" {
		return nil, nil
	}
	var s span
	var errs field.ErrorList
	for _, bound := range []struct {
		text string
		path *field.Path
		to   *timeOfDay
	}{{start, startPath, &s.start}, {end, endPath, &s.end}} {
		if bound.text == "" {
			errs = append(errs, field.Required(bound.path, "give both a start and an end, or leave out both to allow the whole day"))
			continue
		}
		at, err := parseTimeOfDay(bound.text, bound.path)
		if err != nil {
			errs = append(errs, err)
		}
		*bound.to = at
	}
	if len(errs) == 0 && s.start == s.end {
		errs = append(errs, field.Invalid(endPath, end, "is the start; leave out both to allow the whole day"))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return &s, nil
}

// dailyBreaks are the times of day, beside midnight, at which the answer may
// change: every bound; sorted, each once.
func (s Schedule) dailyBreaks() []timeOfDay {
	var breaks []timeOfDay
	for _, part := range []*span{s.window, s.allowed} {
		if part != nil {
			breaks = append(breaks, part.start, part.end)
		}
	}
	slices.SortFunc(breaks, cmp.Compare)
	return slices.Compact(breaks)
}
