// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata" // the same zones on every machine that has none of its own

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// at reads an instant; RFC 3339, so that the offset says which of two is meant.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	got, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// zoned writes an instant as its zone shows it.
func zoned(instant time.Time) string {
	if instant.IsZero() {
		return ""
	}
	return instant.Format(time.RFC3339Nano)
}

func TestAt_SaysWhyAndWhen(t *testing.T) {
	berlin := nightly("02:00", "06:00", "Europe/Berlin")
	friday := window.Spec{MaintenanceWindow: nightly("22:00", "06:00", "Europe/Berlin"), AllowedDays: []string{"Friday"}}
	cases := map[string]struct {
		spec                     window.Spec
		now                      string
		wantOpen                 bool
		wantSince, wantNext, why string
		wantReasons              []window.Reason
	}{
		"before a window": {
			spec: window.Spec{MaintenanceWindow: berlin}, now: "2026-11-22T21:48:00+01:00",
			wantSince: "2026-11-22T06:00:00+01:00", wantNext: "2026-11-23T02:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonOutsideWindow},
			why:         "outside the maintenance window 02:00-06:00 Europe/Berlin; opens Mon 2026-11-23 02:00 CET (in 4h12m)",
		},
		"the last nanosecond before": {
			spec: window.Spec{MaintenanceWindow: berlin}, now: "2026-11-23T01:59:59.999999999+01:00",
			wantSince: "2026-11-22T06:00:00+01:00", wantNext: "2026-11-23T02:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonOutsideWindow},
			why:         "outside the maintenance window 02:00-06:00 Europe/Berlin; opens Mon 2026-11-23 02:00 CET (in 1s)",
		},
		"the start belongs to the window": {
			spec: window.Spec{MaintenanceWindow: berlin}, now: "2026-11-23T01:00:00Z", wantOpen: true,
			wantSince: "2026-11-23T02:00:00+01:00", wantNext: "2026-11-24T02:00:00+01:00",
			why: "inside the maintenance window 02:00-06:00 Europe/Berlin; closes Mon 2026-11-23 06:00 CET (in 4h)",
		},
		"the end does not": {
			spec: window.Spec{MaintenanceWindow: berlin}, now: "2026-11-23T06:00:00+01:00",
			wantSince: "2026-11-23T06:00:00+01:00", wantNext: "2026-11-24T02:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonOutsideWindow},
			why:         "outside the maintenance window 02:00-06:00 Europe/Berlin; opens Tue 2026-11-24 02:00 CET (in 20h)",
		},
		"a day that is not allowed": {
			spec: window.Spec{MaintenanceWindow: berlin, AllowedDays: workdays}, now: "2026-11-21T03:00:00+01:00",
			wantSince: "2026-11-20T06:00:00+01:00", wantNext: "2026-11-23T02:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonDayNotAllowed},
			why:         "Saturday is not an allowed day (Mon-Fri Europe/Berlin); opens Mon 2026-11-23 02:00 CET (in 47h)",
		},
		"outside the window, no day is asked for": {
			spec: window.Spec{MaintenanceWindow: berlin, AllowedDays: workdays}, now: "2026-11-21T12:00:00+01:00",
			wantSince: "2026-11-20T06:00:00+01:00", wantNext: "2026-11-23T02:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonOutsideWindow},
			why:         "outside the maintenance window 02:00-06:00 Europe/Berlin on Mon-Fri; opens Mon 2026-11-23 02:00 CET (in 38h)",
		},
		"Friday's night lasts into Saturday": {
			spec: friday, now: "2026-11-21T05:00:00+01:00", wantOpen: true,
			wantSince: "2026-11-20T22:00:00+01:00", wantNext: "2026-11-27T22:00:00+01:00",
			why: "inside the maintenance window 22:00-06:00 Europe/Berlin on Fri; closes Sat 2026-11-21 06:00 CET (in 60m)",
		},
		"Friday morning is Thursday's night": {
			spec: friday, now: "2026-11-20T05:00:00+01:00",
			wantSince: "2026-11-14T06:00:00+01:00", wantNext: "2026-11-20T22:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonDayNotAllowed},
			why:         "the night began on Thursday, which is not an allowed day (Fri Europe/Berlin); opens Fri 2026-11-20 22:00 CET (in 17h)",
		},
		"Sunday's night lasts into Monday, whose own has to wait": {
			spec: window.Spec{MaintenanceWindow: nightly("22:00", "06:00", "UTC"), AllowedDays: []string{"Sunday"}}, now: "2026-11-23T00:00:00Z", wantOpen: true,
			wantSince: "2026-11-22T22:00:00Z", wantNext: "2026-11-29T22:00:00Z",
			why: "inside the maintenance window 22:00-06:00 UTC on Sun; closes Mon 2026-11-23 06:00 UTC (in 6h)",
		},
		"allowed times cut a night, and leave it its day": {
			spec: window.Spec{MaintenanceWindow: friday.MaintenanceWindow, AllowedDays: friday.AllowedDays, AllowedStart: "00:00", AllowedEnd: "04:00"},
			now:  "2026-11-21T03:59:30+01:00", wantOpen: true,
			wantSince: "2026-11-21T00:00:00+01:00", wantNext: "2026-11-28T00:00:00+01:00",
			why: "inside the maintenance window 22:00-06:00 Europe/Berlin on Fri and the allowed times 00:00-04:00 Europe/Berlin; closes Sat 2026-11-21 04:00 CET (in 30s)",
		},
		"in the window, outside the allowed times": {
			spec: window.Spec{MaintenanceWindow: berlin, AllowedStart: "03:00", AllowedEnd: "05:00"}, now: "2026-11-23T02:30:00+01:00",
			wantSince: "2026-11-22T05:00:00+01:00", wantNext: "2026-11-23T03:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonOutsideAllowedTimes},
			why:         "outside the allowed times 03:00-05:00 Europe/Berlin; opens Mon 2026-11-23 03:00 CET (in 30m)",
		},
		"in the window, all else is against it": {
			spec: window.Spec{MaintenanceWindow: berlin, AllowedDays: workdays, AllowedStart: "03:00", AllowedEnd: "05:00"}, now: "2026-11-22T02:30:00+01:00",
			wantSince: "2026-11-20T05:00:00+01:00", wantNext: "2026-11-23T03:00:00+01:00",
			wantReasons: []window.Reason{window.ReasonDayNotAllowed, window.ReasonOutsideAllowedTimes},
			why:         "Sunday is not an allowed day (Mon-Fri Europe/Berlin), and outside the allowed times 03:00-05:00 Europe/Berlin; opens Mon 2026-11-23 03:00 CET (in 24h)",
		},
		"allowed times alone carry the days": {
			spec: window.Spec{AllowedStart: "09:00", AllowedEnd: "17:00", AllowedDays: workdays}, now: "2026-11-20T18:00:00+01:00",
			wantSince: "2026-11-20T17:00:00Z", wantNext: "2026-11-23T09:00:00Z",
			wantReasons: []window.Reason{window.ReasonOutsideAllowedTimes},
			why:         "outside the allowed times 09:00-17:00 UTC on Mon-Fri; opens Mon 2026-11-23 09:00 UTC (in 2d16h)",
		},
		"days alone run from midnight to midnight": {
			spec: window.Spec{AllowedDays: workdays}, now: "2026-11-20T23:59:59Z", wantOpen: true,
			wantSince: "2026-11-16T00:00:00Z", wantNext: "2026-11-23T00:00:00Z",
			why: "an allowed day (Mon-Fri UTC); closes Sat 2026-11-21 00:00 UTC (in 1s)",
		},
		"days in a zone": {
			spec: window.Spec{MaintenanceWindow: nightly("", "", "Asia/Kathmandu"), AllowedDays: workdays}, now: "2026-11-22T18:14:59Z",
			wantSince: "2026-11-21T00:00:00+05:45", wantNext: "2026-11-23T00:00:00+05:45",
			wantReasons: []window.Reason{window.ReasonDayNotAllowed},
			why:         "Sunday is not an allowed day (Mon-Fri Asia/Kathmandu); opens Mon 2026-11-23 00:00 +0545 (in 1s)",
		},
		"an offset with seconds": {
			spec: window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "Africa/Monrovia")}, now: "1971-06-01T02:44:29Z",
			wantSince: "1971-05-31T06:00:00-00:44", wantNext: "1971-06-01T02:00:00-00:44",
			wantReasons: []window.Reason{window.ReasonOutsideWindow},
			why:         "outside the maintenance window 02:00-06:00 Africa/Monrovia; opens Tue 1971-06-01 02:00 MMT (in 1s)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := at(t, tc.now)
			s := parse(t, tc.spec)
			got := s.At(now)
			var reasons []window.Reason
			for _, b := range got.Blocks {
				reasons = append(reasons, b.Reason)
			}
			if diff := cmp.Diff(tc.wantReasons, reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			want := []any{tc.wantOpen, tc.wantSince, tc.wantNext, tc.why}
			if diff := cmp.Diff(want, []any{got.Open, zoned(got.Since), zoned(got.Next), got.Why}); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if !got.Open && !got.Until.Equal(got.Next) {
				t.Errorf("closed until %v, opens %v", got.Until, got.Next)
			}
		})
	}
}

// TestAt_WithoutAnAnswer: what never changes has no times, and what is not known
// is closed.
func TestAt_WithoutAnAnswer(t *testing.T) {
	now := at(t, "2026-11-23T03:00:00Z")
	gated := parse(t, window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "UTC")})
	block := func(reason window.Reason, message string) window.State {
		return window.State{Blocks: []window.Block{{Reason: reason, Message: message}}, Why: message}
	}
	unread := block(window.ReasonNoSchedule, "the schedule could not be read, and an unknown schedule allows no remediation")
	cases := map[string]struct {
		schedule window.Schedule
		now      time.Time
		skew     time.Duration
		want     window.State
	}{
		"no gate":                             {parse(t, window.Spec{}), now, 0, window.State{Open: true, Why: "may act at any time"}},
		"no gate needs no clock":              {parse(t, window.Spec{}), time.Time{}, time.Hour, window.State{Open: true, Why: "may act at any time"}},
		"no schedule":                         {window.Schedule{}, now, 0, unread},
		"no schedule, whatever the clock":     {window.Schedule{}, now, time.Hour, unread},
		"no time":                             {gated, time.Time{}, 0, block(window.ReasonClockSkew, "the time is not known")},
		"a clock that runs ahead":             {gated, now, 5*time.Second + 1, block(window.ReasonClockSkew, "the own clock is 5.000000001s ahead of the API server's, more than 5s")},
		"a clock that runs behind":            {gated, now, -time.Hour, block(window.ReasonClockSkew, "the own clock is 1h0m0s behind the API server's, more than 5s")},
		"a clock that nobody has compared":    {gated, now, window.SkewUnknown, block(window.ReasonClockSkew, "the own clock has not been compared with the API server's")},
		"a clock that is off by what is left": {gated, now, 5 * time.Second, gated.At(now)},
		"a clock that is behind by no more":   {gated, now, -5 * time.Second, gated.At(now)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.schedule.Decide(tc.now, tc.skew)); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
	if state := gated.At(now); !state.Open {
		t.Error("the schedule of the cases is closed anyway, so nothing was shown")
	}
}

func TestActsOnTime(t *testing.T) {
	for skew, want := range map[time.Duration]bool{
		0: true, time.Second: true, 5 * time.Second: true, -5 * time.Second: true,
		5*time.Second + 1: false, -5*time.Second - 1: false, time.Hour: false, -time.Hour: false,
		math.MaxInt64: false, math.MinInt64 + 1: false, window.SkewUnknown: false,
	} {
		block, ok := window.ActsOnTime(skew)
		if ok != want {
			t.Errorf("%v: got %t", skew, ok)
		}
		if named := block.Reason == window.ReasonClockSkew && block.Message != ""; named == want {
			t.Errorf("%v: reason is %+v", skew, block)
		}
	}
}

func TestRemaining(t *testing.T) {
	berlin := window.Spec{MaintenanceWindow: nightly("02:00", "06:00", "Europe/Berlin")}
	cases := map[string]struct {
		spec window.Spec
		now  string
		want time.Duration
	}{
		"all of it":                          {berlin, "2026-11-23T02:00:00+01:00", 4 * time.Hour},
		"to the nanosecond":                  {berlin, "2026-11-23T05:59:59.999999999+01:00", 1},
		"nothing at the end":                 {berlin, "2026-11-23T06:00:00+01:00", 0},
		"nothing before the start":           {berlin, "2026-11-23T01:59:59+01:00", 0},
		"an hour less, clocks go forward":    {berlin, "2026-03-29T03:00:00+02:00", 3 * time.Hour},
		"an hour more, clocks go back":       {berlin, "2026-10-25T02:00:00+02:00", 5 * time.Hour},
		"half an hour less, on one island":   {window.Spec{MaintenanceWindow: nightly("01:00", "03:00", "Australia/Lord_Howe")}, "2026-10-04T01:00:00+10:30", 90 * time.Minute},
		"forever, where nothing closes it":   {window.Spec{}, "2026-11-23T06:00:00+01:00", window.Forever},
		"up to the allowed end, if earlier":  {window.Spec{MaintenanceWindow: berlin.MaintenanceWindow, AllowedStart: "00:00", AllowedEnd: "03:00"}, "2026-11-23T02:15:00+01:00", 45 * time.Minute},
		"a workweek, over a change of clock": {window.Spec{MaintenanceWindow: nightly("", "", "Europe/Berlin"), AllowedDays: append([]string{"Sunday"}, workdays...)}, "2026-10-25T00:00:00+02:00", (6*24 + 1) * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, tc.spec).Remaining(at(t, tc.now)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if got := (window.Schedule{}).Remaining(at(t, "2026-11-23T03:00:00Z")); got != 0 {
		t.Errorf("a schedule that nobody has read: got %v", got)
	}
}
