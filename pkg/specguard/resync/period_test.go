// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParsePeriod(t *testing.T) {
	tests := map[string]struct {
		text string
		want time.Duration
		kind ProblemKind // empty when it is a period
	}{
		"hours":                             {text: "3h", want: 3 * time.Hour},
		"hours and minutes":                 {text: "1h30m", want: 90 * time.Minute},
		"a fraction":                        {text: "1.5h", want: 90 * time.Minute},
		"the shortest":                      {text: "1s", want: MinPeriod},
		"the longest":                       {text: "8760h", want: MaxPeriod},
		"never":                             {text: "0s"},
		"never in other units":              {text: "0h0m0s"},
		"shorter than the shortest":         {text: "0.999999999s", kind: ProblemOutOfBounds},
		"longer than the longest":           {text: "8760h1s", kind: ProblemOutOfBounds},
		"milliseconds":                      {text: "1500ms", kind: ProblemNotAPeriod},
		"negative":                          {text: "-3h", kind: ProblemNotAPeriod},
		"a bare number":                     {text: "3", kind: ProblemNotAPeriod},
		"a bare zero":                       {text: "0", kind: ProblemNotAPeriod},
		"units out of order":                {text: "30m1h", kind: ProblemNotAPeriod},
		"days":                              {text: "1d", kind: ProblemNotAPeriod},
		"nothing":                           {text: "", kind: ProblemNotAPeriod},
		"a word":                            {text: "off", kind: ProblemNotAPeriod},
		"a space":                           {text: " 3h", kind: ProblemNotAPeriod},
		"a new line at the end":             {text: "3h\n", kind: ProblemNotAPeriod},
		"as many digits as never before":    {text: strings.Repeat("9", 31) + "h", kind: ProblemNotAPeriod},
		"more bytes than a field may have":  {text: "000001.000000001h000001.0000000m1s", kind: ProblemNotAPeriod},
		"zeros that hide nothing but zeros": {text: "0.000000000s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePeriod(tc.text)
			var problem *InputError
			switch {
			case tc.kind == "" && err != nil:
				t.Fatalf("ParsePeriod(%q): %v", tc.text, err)
			case tc.kind != "" && !errors.As(err, &problem):
				t.Fatalf("ParsePeriod(%q) = %s, %v; want a %s", tc.text, got, err, tc.kind)
			case tc.kind != "" && problem.Kind != tc.kind:
				t.Fatalf("ParsePeriod(%q): %s, want %s", tc.text, problem.Kind, tc.kind)
			}
			if got != tc.want {
				t.Errorf("ParsePeriod(%q) = %s, want %s", tc.text, got, tc.want)
			}
		})
	}
}

// FuzzParsePeriod holds the parser against what it promises: it takes nothing but
// whole strings of a bounded duration, reads it as Go does, and what it refuses is
// told without anything that moves a cursor.
func FuzzParsePeriod(f *testing.F) {
	for _, seed := range []string{"3h", "0s", "1h30m5.5s", "8760h", "-1s", "1e3s", "", "9999999h", "\x1b[2J", "3h\x00", "١h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		period, err := ParsePeriod(text)
		if err != nil {
			if period != 0 {
				t.Fatalf("%q: %s beside an error", text, period)
			}
			for _, r := range err.Error() {
				if r < ' ' || r == 0x7f {
					t.Fatalf("%q: the message has the control character %q", text, r)
				}
			}
			return
		}
		if period != 0 && (period < MinPeriod || period > MaxPeriod) {
			t.Fatalf("%q: %s is out of bounds", text, period)
		}
		if std, err := time.ParseDuration(text); err != nil || std != period {
			t.Fatalf("%q: %s, but Go reads %s, %v", text, period, std, err)
		}
		if strings.ContainsAny(text, "-+µn \t\n") {
			t.Fatalf("%q was taken", text)
		}
	})
}

func TestEveryPeriodInItsShortFormMeansItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.IntRange(1, int(MaxPeriod/time.Second)).Draw(t, "seconds")) * time.Second
		got, err := ParsePeriod(short(period))
		if err != nil || got != period {
			t.Fatalf("%s reads as %s, %v", short(period), got, err)
		}
	})
}

func TestShortIsHowPeopleWriteIt(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"3h": 3 * time.Hour, "5m": 5 * time.Minute, "0s": 0, "10s": 10 * time.Second, "1h30m": 90 * time.Minute,
		"1h0m5s": time.Hour + 5*time.Second, "8760h": MaxPeriod, "20m": 20 * time.Minute, "10h10m10s": 10*time.Hour + 10*time.Minute + 10*time.Second,
	} {
		if got := short(d); got != want {
			t.Errorf("short(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestAForeignTextIsCutAndQuoted(t *testing.T) {
	_, err := ParsePeriod(strings.Repeat("\x1b", 4096))
	if err == nil || len(err.Error()) > 512 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("message: %v", err)
	}
}
