// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

var path = field.NewPath("spec")

// nightly is a window in a zone.
func nightly(start, end, zone string) *window.MaintenanceWindow {
	return &window.MaintenanceWindow{Start: start, End: end, TimeZone: zone}
}

var workdays = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"}

// parse a schedule that must be right.
func parse(t testing.TB, spec window.Spec) window.Schedule {
	t.Helper()
	s, errs := window.Parse(spec, path, nil)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return s
}

// TestParse_Accepts shows each schedule by its own words.
func TestParse_Accepts(t *testing.T) {
	cases := map[string]struct {
		spec      window.Spec
		want      string
		wantGated bool
	}{
		"nothing at all allows any time": {window.Spec{}, "at any time", false},
		"every day, spelt out, is no gate": {
			window.Spec{AllowedDays: append([]string{"Saturday", "Sunday"}, workdays...)}, "at any time", false,
		},
		"a window": {
			window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "Europe/Berlin")}, "02:00-06:00 Europe/Berlin", true,
		},
		"a window on days, as in the default policy": {
			window.Spec{
				MaintenanceWindow: nightly("02:00", "06:00", "UTC"),
				AllowedDays:       []string{"monday", "tuesday", "wednesday", "thursday", "friday"},
			},
			"02:00-06:00 UTC on Mon-Fri", true,
		},
		"a window across midnight": {
			window.Spec{MaintenanceWindow: nightly("22:00", "06:00", "Asia/Kathmandu")}, "22:00-06:00 Asia/Kathmandu", true,
		},
		"a window up to midnight": {
			window.Spec{MaintenanceWindow: nightly("20:00", "00:00", "UTC")}, "20:00-00:00 UTC", true,
		},
		"all but a minute": {window.Spec{MaintenanceWindow: nightly("00:01", "00:00", "UTC")}, "00:01-00:00 UTC", true},
		"allowed times alone are in UTC": {
			window.Spec{AllowedStart: "09:00", AllowedEnd: "17:30"}, "09:00-17:30 UTC", true,
		},
		"allowed times within a window": {
			window.Spec{MaintenanceWindow: nightly("22:00", "06:00", "Europe/Berlin"), AllowedDays: []string{"Friday"}, AllowedStart: "00:00", AllowedEnd: "04:00"},
			"22:00-06:00 Europe/Berlin on Fri, within 00:00-04:00", true,
		},
		"allowed times that touch a window by a minute": {
			window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "UTC"), AllowedStart: "05:59", AllowedEnd: "12:00"},
			"02:00-06:00 UTC, within 05:59-12:00", true,
		},
		"days alone are in UTC": {
			window.Spec{AllowedDays: []string{"Sunday", "Saturday"}}, "Sat, Sun UTC", true,
		},
		"a zone for days without a time of day": {
			window.Spec{MaintenanceWindow: nightly("", "", "Europe/Berlin"), AllowedDays: []string{"Monday", "Wednesday", "Thursday", "Friday", "Sunday"}},
			"Mon, Wed-Fri, Sun Europe/Berlin", true,
		},
		"a zone alone is no gate": {window.Spec{MaintenanceWindow: nightly("", "", "Europe/Berlin")}, "at any time", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := parse(t, tc.spec)
			if diff := cmp.Diff(tc.want, s.String()); diff != "" {
				t.Errorf("schedule (-want +got):\n%s", diff)
			}
			if s.TimeGated() != tc.wantGated {
				t.Errorf("time-gated: got %t", s.TimeGated())
			}
		})
	}
}

// TestParse_Refuses names the field and says how to write it.
func TestParse_Refuses(t *testing.T) {
	const (
		zoneFix  = "write an IANA time zone such as Europe/Berlin, or UTC"
		timeFix  = `write hours and minutes of a day of 24 hours, as in "02:00" or "18:30"`
		bothFix  = "give both a start and an end, or leave out both to allow the whole day"
		wholeDay = "is the start; leave out both to allow the whole day"
	)
	start := func(text string) window.Spec {
		return window.Spec{MaintenanceWindow: nightly(text, "06:00", "UTC")}
	}
	zone := func(name string) window.Spec {
		return window.Spec{MaintenanceWindow: nightly("02:00", "06:00", name)}
	}
	startError := func(text, fix string) []string {
		return []string{`spec.maintenanceWindow.start: Invalid value: "` + text + `": ` + fix}
	}
	zoneError := func(name, fix string) []string {
		return []string{`spec.maintenanceWindow.timeZone: Invalid value: "` + name + `": ` + fix}
	}
	days := `supported values: "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"`
	cases := map[string]struct {
		spec window.Spec
		want []string
	}{
		"an hour that no day has":          {start("25:00"), startError("25:00", "hours are 00 to 23")},
		"an hour of one digit":             {start("2:00"), startError("2:00", `write the hour with two digits: "02:00"`)},
		"midnight as 24:00":                {start("24:00"), startError("24:00", `midnight is "00:00"; as an end it is the one that follows the start`)},
		"an hour beyond, with minutes":     {start("24:01"), startError("24:01", "hours are 00 to 23")},
		"a minute that no hour has":        {start("12:60"), startError("12:60", "minutes are 00 to 59")},
		"seconds":                          {start("02:00:00"), startError("02:00:00", timeFix)},
		"a word":                           {start("noon!"), startError("noon!", timeFix)},
		"another separator":                {start("02.00"), startError("02.00", timeFix)},
		"a sign":                           {start("-2:00"), startError("-2:00", timeFix)},
		"a space":                          {start(" 2:00"), startError(" 2:00", timeFix)},
		"half a day, as Americans do":      {start("2:00pm"), startError("2:00pm", timeFix)},
		"digits of another script":         {start("٢:٠"), startError("٢:٠", timeFix)},
		"a window without a zone":          {zone(""), []string{"spec.maintenanceWindow.timeZone: Required value: " + zoneFix}},
		"the machine's own zone":           {zone("Local"), zoneError("Local", "differs from machine to machine; "+zoneFix)},
		"the machine's own zone, lower":    {zone("local"), zoneError("local", "differs from machine to machine; "+zoneFix)},
		"the machine's own zone as a file": {zone("localtime"), zoneError("localtime", "differs from machine to machine; "+zoneFix)},
		"a zone that nobody knows":         {zone("Mars/Olympus"), zoneError("Mars/Olympus", zoneFix+" (unknown time zone Mars/Olympus)")},
		"a zone by its offset":             {zone("UTC+2"), zoneError("UTC+2", zoneFix+" (unknown time zone UTC+2)")},
		"a zone that leaves the database":  {zone("../etc/passwd"), zoneError("../etc/passwd", zoneFix+" (time: invalid location name)")},
		"a zone that counts leap seconds":  {zone("right/Europe/Berlin"), zoneError("right/Europe/Berlin", `leave out "right/"`)},
		"a start without an end": {
			window.Spec{MaintenanceWindow: nightly("02:00", "", "UTC")},
			[]string{"spec.maintenanceWindow.end: Required value: " + bothFix},
		},
		"an end without a start": {
			window.Spec{MaintenanceWindow: nightly("", "02:00", "UTC")},
			[]string{"spec.maintenanceWindow.start: Required value: " + bothFix},
		},
		"an end without a start that no day has either": {
			window.Spec{MaintenanceWindow: nightly("", "25:00", "UTC")},
			[]string{
				"spec.maintenanceWindow.start: Required value: " + bothFix,
				`spec.maintenanceWindow.end: Invalid value: "25:00": hours are 00 to 23`,
			},
		},
		"a window as long as nothing, or a day": {
			window.Spec{MaintenanceWindow: nightly("02:00", "02:00", "UTC")},
			[]string{`spec.maintenanceWindow.end: Invalid value: "02:00": ` + wholeDay},
		},
		"allowed times as long as nothing, or a day": {
			window.Spec{AllowedStart: "00:00", AllowedEnd: "00:00"},
			[]string{`spec.allowedEnd: Invalid value: "00:00": ` + wholeDay},
		},
		"an allowed start alone": {
			window.Spec{AllowedStart: "09:00"}, []string{"spec.allowedEnd: Required value: " + bothFix},
		},
		"a set of no day": {
			window.Spec{AllowedDays: []string{}},
			[]string{"spec.allowedDays: Required value: name at least one day, or leave it out to allow every day"},
		},
		"a day that no week has": {
			window.Spec{AllowedDays: []string{"Monday", "Mon", "MONDAY", ""}},
			[]string{
				`spec.allowedDays[1]: Unsupported value: "Mon": ` + days,
				`spec.allowedDays[2]: Unsupported value: "MONDAY": ` + days,
				`spec.allowedDays[3]: Unsupported value: "": ` + days,
			},
		},
		"a day twice, in two spellings": {
			window.Spec{AllowedDays: []string{"Monday", "Tuesday", "monday"}}, []string{`spec.allowedDays[2]: Duplicate value: "monday"`},
		},
		"times that never meet the window": {
			window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "UTC"), AllowedStart: "06:00", AllowedEnd: "02:00"},
			[]string{`spec.allowedStart: Invalid value: "06:00-02:00": these times never meet the maintenance window 02:00-06:00, so it would never open; leave out one of the two`},
		},
		"everything at once is told at once": {
			window.Spec{MaintenanceWindow: nightly("2", "25:00", ""), AllowedDays: []string{}, AllowedEnd: "07:00"},
			[]string{
				"spec.maintenanceWindow.timeZone: Required value: " + zoneFix,
				`spec.maintenanceWindow.start: Invalid value: "2": ` + timeFix,
				`spec.maintenanceWindow.end: Invalid value: "25:00": hours are 00 to 23`,
				"spec.allowedDays: Required value: name at least one day, or leave it out to allow every day",
				"spec.allowedStart: Required value: " + bothFix,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, errs := window.Parse(tc.spec, path, nil)
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if state := s.At(time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)); state.Open {
				t.Error("a schedule with errors is open")
			}
		})
	}
}

// TestParse_AsksTheLoader: zones come from nowhere else, and an answer that is
// none is refused.
func TestParse_AsksTheLoader(t *testing.T) {
	errNoData := errors.New("no data")
	cases := map[string]struct {
		load window.ZoneLoader
		want string
	}{
		"a zone that only this loader knows": {
			func(string) (*time.Location, error) { return time.FixedZone("Mars/Olympus", 37*60), nil }, "",
		},
		"a loader that fails": {
			func(string) (*time.Location, error) { return nil, errNoData },
			`spec.maintenanceWindow.timeZone: Invalid value: "Mars/Olympus": write an IANA time zone such as Europe/Berlin, or UTC (no data)`,
		},
		"a loader that returns nothing": {
			func(string) (*time.Location, error) { return nil, nil },
			`spec.maintenanceWindow.timeZone: Invalid value: "Mars/Olympus": write an IANA time zone such as Europe/Berlin, or UTC`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, errs := window.Parse(window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "Mars/Olympus")}, path, tc.load)
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			// 02:00 at 37 minutes ahead of UTC.
			if want := tc.want == ""; s.At(time.Date(2026, 1, 1, 1, 23, 0, 0, time.UTC)).Open != want {
				t.Errorf("open: got %t", !want)
			}
		})
	}
}
