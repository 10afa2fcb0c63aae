// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for name, tc := range map[string]struct {
		of   time.Duration
		want string
	}{
		"no time":                       {0, "0s"},
		"parts of a second are cut":     {1900 * time.Millisecond, "1s"},
		"seconds below ten have a zero": {302 * time.Second, "5m02s"},
		"whole minutes have no seconds": {10 * time.Minute, "10m"},
		"hours have no seconds":         {2*time.Hour + 5*time.Minute + 9*time.Second, "2h05m"},
		"days have hours":               {76 * time.Hour, "3d04h"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FormatClock(tc.of); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWordsOfNumbers(t *testing.T) {
	for name, tc := range map[string]struct{ got, want string }{
		"digits stand in groups":        {GroupDigits(1234567), "1,234,567"},
		"three digits are one group":    {GroupDigits(123), "123"},
		"a negative number has no gap":  {GroupDigits(-123456), "-123,456"},
		"a rate has two decimals":       {FormatRate("0.3167"), "0.32"},
		"a small rate is no zero":       {FormatRate("0.0012"), "0.0012"},
		"a zero is a zero":              {FormatRate("0"), "0.00"},
		"a rate that is none is shown":  {FormatRate("x"), "x"},
		"no rate is unknown":            {FormatRate(""), Unknown},
		"a share has its decimals":      {FormatShare(new(74.6), 1), "74.6 %"},
		"a whole share has no decimals": {FormatShare(new(100.0), 2), "100 %"},
		"no share is unknown":           {FormatShare(nil, 1), Unknown},
		"a stage of a later version":    {MarkStage("Later"), "?"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}
