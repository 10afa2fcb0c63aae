// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// FuzzParse: whatever is written, it is refused with a field below the path, or
// it is a schedule whose changes surround the moment and really are changes.
func FuzzParse(f *testing.F) {
	f.Add("02:00", "06:00", "Europe/Berlin", "Monday,friday", "", "", int64(1774746000))
	f.Add("22:00", "06:00", "Pacific/Apia", "Friday", "23:00", "05:00", int64(1325203200))
	f.Add("", "", "UTC", "", "09:00", "17:00", int64(-1))
	f.Add("25:00", "2:00", "Local", "Mon,Mon", "24:00", "", int64(0))
	f.Fuzz(func(t *testing.T, start, end, zone, days, allowedStart, allowedEnd string, unix int64) {
		spec := window.Spec{
			MaintenanceWindow: nightly(start, end, zone),
			AllowedStart:      allowedStart, AllowedEnd: allowedEnd,
		}
		if days != "" {
			spec.AllowedDays = strings.Split(days, ",")
		}
		s, errs := window.Parse(spec, path, nil)
		for _, err := range errs {
			if !strings.HasPrefix(err.Field, "spec.") {
				t.Fatalf("an error without a field: %v", err)
			}
		}
		now := time.Unix(unix%(1<<36), 0) // about two thousand years either way
		state := s.At(now)
		switch {
		case len(errs) > 0:
			if state.Open {
				t.Fatal("refused, and open")
			}
		case !s.TimeGated():
			if !state.Open || !state.Until.IsZero() {
				t.Fatalf("not time-gated, and %+v", state)
			}
		default:
			checkChanges(t, s, now, state)
		}
	})
}

func checkChanges(t *testing.T, s window.Schedule, now time.Time, state window.State) {
	t.Helper()
	if state.Since.After(now) || !state.Until.After(now) || !state.Next.After(now) {
		t.Fatalf("%v at %v: since %v, until %v, next %v", s, now, state.Since, state.Until, state.Next)
	}
	for moment, want := range map[time.Time]bool{
		state.Since: state.Open, state.Since.Add(-1): !state.Open,
		state.Until.Add(-1): state.Open, state.Until: !state.Open,
		state.Next: true, state.Next.Add(-1): false,
	} {
		if got := s.At(moment).Open; got != want {
			t.Fatalf("%v at %v: open at %v is %t; %+v", s, now, moment, got, state)
		}
	}
}
