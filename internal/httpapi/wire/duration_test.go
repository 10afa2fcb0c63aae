// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestADurationIsReadInThreeForms(t *testing.T) {
	tests := map[string]struct {
		text string
		want time.Duration // -1 for an error
	}{
		"the clock":                       {"00:15:00", 15 * time.Minute},
		"a whole day as hours":            {"24:00:00", 24 * time.Hour},
		"days":                            {"1.02:00:03", 26*time.Hour + 3*time.Second},
		"a fraction":                      {"00:00:01.5", 1500 * time.Millisecond},
		"Go":                              {"1h30m", 90 * time.Minute},
		"ISO 8601":                        {"PT15M", 15 * time.Minute},
		"ISO 8601 with days":              {"P1DT1H2M3.5S", 25*time.Hour + 2*time.Minute + 3500*time.Millisecond},
		"ISO 8601 of days alone":          {"P2D", 48 * time.Hour},
		"no text":                         {"", -1},
		"ISO 8601 of nothing":             {"P", -1},
		"ISO 8601 that stops in the time": {"P1DT", -1},
		"a number":                        {"15", -1},
		"61 minutes":                      {"00:61:00", -1},
		"a negative clock":                {"-00:01:00", -1},
		"a negative Go duration":          {"-5m", -1},
		"more than is counted":            {"999999.00:00:00", -1},
		"hours without end":               {"PT9999999H", -1},
		"months":                          {"P1M", -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := Duration{-1}
			if err := d.UnmarshalText([]byte(tc.text)); (err != nil) != (tc.want < 0) || d.Duration != tc.want {
				t.Errorf("%q is %s (%v), want %s", tc.text, d.Duration, err, tc.want)
			}
		})
	}
}

func TestADurationIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Duration{time.Duration(rapid.Int64Range(0, int64(maxDays*day)).Draw(t, "nanoseconds"))}
		var got Duration
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%s is read as %s (%v)", want, got, err)
		}
	})
}
