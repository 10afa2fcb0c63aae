// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// twin is the one rule, naively: it looks at the clock on the wall, minute by
// minute, and reads the spec as text.
type twin struct {
	spec window.Spec
	zone *time.Location
}

func (w twin) open(moment time.Time) bool {
	local := moment.In(w.zone)
	shown := local.Format("15:04")
	start, end := w.spec.AllowedStart, w.spec.AllowedEnd
	if m := w.spec.MaintenanceWindow; m != nil && m.Start != "" {
		if !shows(w.spec.AllowedStart, w.spec.AllowedEnd, shown) {
			return false
		}
		start, end = m.Start, m.End
	}
	if !shows(start, end, shown) {
		return false
	}
	y, m, d := local.Date()
	if start > end && shown < end {
		d-- // the night began on the calendar day before
	}
	day := time.Date(y, m, d, 12, 0, 0, 0, time.UTC).Weekday().String()
	return w.spec.AllowedDays == nil || slices.Contains(w.spec.AllowedDays, day)
}

func shows(start, end, shown string) bool {
	switch {
	case start == "":
		return true
	case start < end:
		return start <= shown && shown < end
	default:
		return start <= shown || shown < end
	}
}

// search walks from a moment until the answer differs, and returns the first
// minute at which it does; zero if it never does within a month.
func (w twin) search(from time.Time, step time.Duration) time.Time {
	was := w.open(from)
	for m := range 31 * 24 * 60 {
		if moment := from.Add(time.Duration(m) * step); w.open(moment) != was {
			return moment
		}
	}
	return time.Time{}
}

func (w twin) state(minute time.Time) (open bool, since, until, next time.Time) {
	open = w.open(minute)
	if since = w.search(minute, -time.Minute); !since.IsZero() {
		since = since.Add(time.Minute)
	}
	until = w.search(minute, time.Minute)
	next = until
	if open && !until.IsZero() {
		next = w.search(until, time.Minute)
	}
	return open, since, until, next
}

// changes of clocks: an hour, half an hour, at midnight, just after midnight, a
// day left out, a zone that changes its mind for a month each year.
var changes = map[string][]string{
	"UTC":                 {"1970-01-01", "2024-12-31"},
	"Europe/Berlin":       {"2026-03-29", "2026-10-25", "2036-12-31"},
	"America/New_York":    {"2026-03-08", "2026-11-01", "2028-12-31"},
	"Australia/Lord_Howe": {"2026-04-04", "2026-10-03"},
	"Pacific/Apia":        {"2011-12-30", "2012-03-31"},
	"Asia/Kathmandu":      {"1985-12-31", "2026-11-23"},
	"America/Sao_Paulo":   {"2018-02-18", "2018-11-04"},
	"America/St_Johns":    {"2010-03-14", "2010-11-07"},
	"Africa/Casablanca":   {"2026-02-15", "2026-03-22"},
	"Europe/Dublin":       {"2026-03-29", "2026-10-25"},
	"Antarctica/Troll":    {"2026-03-29", "2026-10-25"},
}

func drawMoment(t *rapid.T, zone string) time.Time {
	if rapid.Bool().Draw(t, "anywhere") {
		return time.Unix(60*rapid.Int64Range(0, 40*366*24*60).Draw(t, "minute since 2000")+946684800, 0)
	}
	day, err := time.Parse(time.DateOnly, rapid.SampledFrom(changes[zone]).Draw(t, "day"))
	if err != nil {
		t.Fatal(err)
	}
	return day.Add(time.Duration(rapid.IntRange(-36*60, 60*60).Draw(t, "minutes")) * time.Minute)
}

func drawTimeOfDay(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"00:00", "00:01", "01:00", "01:30", "02:00", "02:15", "02:30", "03:00", "22:00", "23:59"}),
		rapid.Custom(func(t *rapid.T) string {
			return time.Unix(60*rapid.Int64Range(0, 1439).Draw(t, "minute"), 0).UTC().Format("15:04")
		}),
	).Draw(t, label)
}

// drawSpec draws until the spec is right: those that Parse refuses are few.
func drawSpec(t *rapid.T, zone string) (window.Spec, window.Schedule) {
	for {
		spec := window.Spec{MaintenanceWindow: &window.MaintenanceWindow{TimeZone: zone}}
		if rapid.IntRange(0, 3).Draw(t, "window") > 0 {
			spec.MaintenanceWindow.Start, spec.MaintenanceWindow.End = drawTimeOfDay(t, "start"), drawTimeOfDay(t, "end")
		}
		if rapid.Bool().Draw(t, "allowed times") {
			spec.AllowedStart, spec.AllowedEnd = drawTimeOfDay(t, "allowed start"), drawTimeOfDay(t, "allowed end")
		}
		if rapid.Bool().Draw(t, "days") {
			days := append([]string{"Saturday", "Sunday"}, workdays...)
			spec.AllowedDays = rapid.SliceOfNDistinct(rapid.SampledFrom(days), 1, 7, rapid.ID).Draw(t, "allowed days")
		}
		if s, errs := window.Parse(spec, path, nil); len(errs) == 0 {
			return spec, s
		}
	}
}

// TestAt_LikeTheTwin, in each zone.
func TestAt_LikeTheTwin(t *testing.T) {
	for zone := range changes {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(zone, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				spec, s := drawSpec(t, zone)
				minute := drawMoment(t, zone)
				now := minute.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "beyond the minute")))
				compare(t, twin{spec, location}, s, minute, now)
			})
		})
	}
}

func compare(t interface{ Fatalf(string, ...any) }, w twin, s window.Schedule, minute, now time.Time) {
	got := s.At(now)
	open, since, until, next := w.state(minute)
	if got.Open != open {
		t.Fatalf("%v at %v: open is %t", s, now.In(w.zone), got.Open)
	}
	if !got.Since.Equal(since) || !got.Until.Equal(until) || !got.Next.Equal(next) {
		t.Fatalf("%v at %v:\n got since %v, until %v, next %v\nwant since %v, until %v, next %v", s, now.In(w.zone),
			got.Since, got.Until, got.Next, since.In(w.zone), until.In(w.zone), next.In(w.zone))
	}
	if (len(got.Blocks) == 0) != open {
		t.Fatalf("%v at %v: open is %t, blocks are %v", s, now.In(w.zone), open, got.Blocks)
	}
	var left time.Duration
	switch {
	case open && until.IsZero():
		left = window.Forever
	case open:
		left = until.Sub(now)
	}
	if remaining := s.Remaining(now); remaining != left {
		t.Fatalf("%v at %v: remaining %v, want %v", s, now.In(w.zone), remaining, left)
	}
}

// TestAt_ZoneWhoseRuleGoesOn: a zone that lists no changes and follows a rule
// alone, as slim time zone databases have them. On the last day of a leap year
// Go's bounds of such a zone leave the moment out (golang/go#81583); that shall
// neither hang the search nor move a bound.
func TestAt_ZoneWhoseRuleGoesOn(t *testing.T) {
	zone := ruleZone(t, "Rule/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3")
	spec := window.Spec{MaintenanceWindow: nightly("22:30", "02:30", "Rule/Berlin"), AllowedDays: workdays}
	s, errs := window.Parse(spec, path, func(string) (*time.Location, error) { return zone, nil })
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for _, from := range []string{"2028-12-30", "2028-03-25", "2028-10-28", "2027-12-30", "2040-12-30"} {
		start := at(t, from+"T00:00:00Z")
		for m := range 3 * 24 {
			minute := start.Add(time.Duration(m) * 61 * time.Minute)
			compare(t, twin{spec, zone}, s, minute, minute)
		}
	}
}

// ruleZone builds a TZif file of version 2 (RFC 8536) with no data but a footer.
func ruleZone(t *testing.T, name, rule string) *time.Location {
	t.Helper()
	header := append([]byte("TZif2"), make([]byte, 15+6*4)...)
	header[39], header[43] = 1, 4 // one local time type, four bytes of names
	block := append(slices.Clone(header), 0, 0, 0x0e, 0x10, 0, 0, 'C', 'E', 'T', 0)
	data := slices.Concat(block, block, []byte("\n"+rule+"\n"))
	zone, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestAt_VisitsEveryOpening of two years by going from change to change, and adds
// up the open time, which the twin counts in minutes.
func TestAt_VisitsEveryOpening(t *testing.T) {
	spec := window.Spec{MaintenanceWindow: nightly("22:15", "02:45", "Australia/Lord_Howe"), AllowedDays: []string{"Saturday", "Sunday"}}
	s := parse(t, spec)
	zone, err := time.LoadLocation("Australia/Lord_Howe")
	if err != nil {
		t.Fatal(err)
	}
	from, to := at(t, "2025-01-01T00:00:00Z"), at(t, "2027-01-01T00:00:00Z")
	var want, got time.Duration
	for minute := from; minute.Before(to); minute = minute.Add(time.Minute) {
		if (twin{spec, zone}).open(minute) {
			want += time.Minute
		}
	}
	for now := from; now.Before(to); {
		state := s.At(now)
		if !state.Until.After(now) {
			t.Fatalf("at %v it changes at %v", now, state.Until)
		}
		if state.Open {
			got += state.Until.Sub(now)
		}
		now = state.Until
	}
	if got != want {
		t.Errorf("open for %v, want %v", got, want)
	}
}
