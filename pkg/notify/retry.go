// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strconv"
	"strings"
	"time"
)

// Retry says how long a delivery is tried.
type Retry struct {
	// AttemptTimeout bounds one attempt.
	AttemptTimeout time.Duration
	// Deadline bounds all attempts together, and the wait before them.
	Deadline time.Duration
	// BackoffBase is the wait after the first failure, before jitter; each
	// further one waits twice as long, up to BackoffMax.
	BackoffBase, BackoffMax time.Duration
}

// DefaultRetry gives a receiver the 15 s that Standard Webhooks 1.0.0 recommends,
// and an hour to come back. Older news than that nobody needs by this way.
var DefaultRetry = Retry{
	AttemptTimeout: 15 * time.Second,
	Deadline:       time.Hour,
	BackoffBase:    time.Second,
	BackoffMax:     time.Minute,
}

// Completed has the value of DefaultRetry wherever r has none.
func (r Retry) Completed() Retry {
	or := func(d, standard time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return standard
	}
	return Retry{
		AttemptTimeout: or(r.AttemptTimeout, DefaultRetry.AttemptTimeout),
		Deadline:       or(r.Deadline, DefaultRetry.Deadline),
		BackoffBase:    or(r.BackoffBase, DefaultRetry.BackoffBase),
		BackoffMax:     or(r.BackoffMax, DefaultRetry.BackoffMax),
	}
}

// Delay is the wait after the attempt-th attempt (from 1) failed: the upper half
// of the exponential backoff is random, by jitter in [0, 1), so that channels
// that failed together do not return together. It is never shorter than what the
// receiver asked for.
func (r Retry) Delay(attempt int, retryAfter time.Duration, jitter float64) time.Duration {
	full := r.BackoffMax
	// 2^40 of even a microsecond is 12 days: past that only the maximum is left,
	// and the shift must not overflow.
	if shift := attempt - 1; shift < 40 && r.BackoffBase <= r.BackoffMax>>max(shift, 0) {
		full = r.BackoffBase << max(shift, 0)
	}
	half := full / 2
	return max(half+time.Duration(jitter*float64(full-half)), retryAfter)
}

// maxRetryAfter is longer than any Deadline makes sense, and far from overflow.
const maxRetryAfter = 7 * 24 * time.Hour

// httpDates are the three spellings of RFC 9110 5.6.7.
var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC}

// ParseRetryAfter reads the header of RFC 9110 10.2.3, seconds or a date. What is
// neither, or past, is no wait; more than a week is a week.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	for _, layout := range httpDates {
		if at, err := time.Parse(layout, value); err == nil {
			return min(max(at.Sub(now), 0), maxRetryAfter)
		}
	}
	return 0
}
