// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

func TestRetry_Delay(t *testing.T) {
	r := notify.Retry{BackoffBase: time.Second, BackoffMax: time.Minute}
	cases := map[string]struct {
		attempt int
		after   time.Duration
		jitter  float64
		want    time.Duration
	}{
		"the first wait at least":              {1, 0, 0, 500 * time.Millisecond},
		"the first wait in the middle":         {1, 0, 0.5, 750 * time.Millisecond},
		"each wait doubles":                    {4, 0, 0, 4 * time.Second},
		"up to the maximum":                    {7, 0, 0, 30 * time.Second},
		"and stays there":                      {1000, 0, 0.5, 45 * time.Second},
		"a receiver that asks for more":        {1, 20 * time.Second, 0.5, 20 * time.Second},
		"a receiver that asks for less":        {4, time.Second, 0, 4 * time.Second},
		"a receiver may ask beyond the bounds": {1, time.Hour, 0, time.Hour},
		"an attempt that never was":            {0, 0, 0, 500 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := r.Delay(tc.attempt, tc.after, tc.jitter); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestRetry_DelayLikeItsDefinition compares with arithmetic that cannot overflow.
func TestRetry_DelayLikeItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base"))
		most := time.Duration(rapid.Int64Range(1, int64(1000*time.Hour)).Draw(t, "max"))
		attempt := rapid.IntRange(1, 200).Draw(t, "attempt")
		jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		full := new(big.Int).Lsh(big.NewInt(int64(base)), uint(attempt-1))
		if full.Cmp(big.NewInt(int64(most))) > 0 {
			full.SetInt64(int64(most))
		}
		half := full.Int64() / 2
		want := time.Duration(half) + time.Duration(jitter*float64(full.Int64()-half))
		got := notify.Retry{BackoffBase: base, BackoffMax: most}.Delay(attempt, 0, jitter)
		if got != want {
			// 2^40 times the base is always beyond the maximum for bases that
			// anybody sets; for nanoseconds the definition needs a few more.
			if attempt > 40 && got >= want {
				return
			}
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func TestRetry_Completed(t *testing.T) {
	if diff := cmp.Diff(notify.DefaultRetry, notify.Retry{}.Completed()); diff != "" {
		t.Errorf("nothing said (-want +got):\n%s", diff)
	}
	own := notify.Retry{AttemptTimeout: 1, Deadline: 2, BackoffBase: 3, BackoffMax: 4}
	if diff := cmp.Diff(own, own.Completed()); diff != "" {
		t.Errorf("all said (-want +got):\n%s", diff)
	}
	if got := (notify.Retry{AttemptTimeout: -1}).Completed().AttemptTimeout; got != notify.DefaultRetry.AttemptTimeout {
		t.Errorf("a negative time is taken: %s", got)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 2, 3, 4, 5, 0, time.UTC)
	week := 7 * 24 * time.Hour
	cases := map[string]struct {
		value string
		want  time.Duration
	}{
		"seconds":                       {"120", 2 * time.Minute},
		"no seconds":                    {"0", 0},
		"spaces around":                 {" 3 ", 3 * time.Second},
		"a date":                        {"Mon, 02 Mar 2026 03:05:05 GMT", time.Minute},
		"a date of RFC 850":             {"Monday, 02-Mar-26 03:05:05 GMT", time.Minute},
		"a date of C":                   {"Mon Mar  2 03:05:05 2026", time.Minute},
		"a date in the past":            {"Mon, 02 Mar 2026 03:03:05 GMT", 0},
		"more than a week":              {"604801", week},
		"more than a number can be":     {strings.Repeat("9", 40), week},
		"a date in the far future":      {"Mon, 02 Mar 2099 03:05:05 GMT", week},
		"a negative number":             {"-5", 0},
		"a fraction":                    {"1.5", 0},
		"words":                         {"soon", 0},
		"nothing":                       {"", 0},
		"a date in another time zone":   {"Mon, 02 Mar 2026 03:05:05 CET", 0},
		"seconds in digits of Bengal":   {"১২", 0},
		"a number with a unit after it": {"10s", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := notify.ParseRetryAfter(tc.value, now); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// FuzzParseRetryAfter: between nothing and a week, and for dates what net/http
// reads in them.
func FuzzParseRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Mon, 02 Mar 2026 03:05:05 GMT")
	f.Add("Monday, 02-Mar-26 03:05:05 GMT")
	f.Add("99999999999999999999")
	now := time.Date(2026, 3, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		got := notify.ParseRetryAfter(value, now)
		if got < 0 || got > 7*24*time.Hour {
			t.Fatalf("%q: %s", value, got)
		}
		trimmed := strings.TrimSpace(value)
		if at, err := http.ParseTime(trimmed); err == nil {
			if want := min(max(at.Sub(now), 0), 7*24*time.Hour); got != want {
				t.Fatalf("%q: %s, net/http says %s", value, got, want)
			}
		} else if n, err := strconv.ParseUint(trimmed, 10, 32); err == nil && !strings.HasPrefix(trimmed, "+") {
			if want := min(time.Duration(n)*time.Second, 7*24*time.Hour); got != want {
				t.Fatalf("%q: %s, want %s", value, got, want)
			}
		}
	})
}
