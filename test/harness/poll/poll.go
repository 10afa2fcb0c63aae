// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// errFalse is all that a condition tells.
var errFalse = errors.New("it never came true")

// Until makes a check again and again until it passes, and ends the test with
// its last error when that takes longer than limit. A check under way is not
// interrupted, and the last check comes at the limit. It works in Cleanup too, where
// the test's own context is over.
func Until(tb testing.TB, limit time.Duration, what string, check func() error) {
	tb.Helper()
	until(tb, &waits.Wait{What: what, Limit: limit.Seconds()}, limit, waits.Interval, check)
}

// True is Until for a condition that tells nothing but whether it holds.
func True(tb testing.TB, limit time.Duration, what string, condition func() bool) {
	tb.Helper()
	Until(tb, limit, what, func() error {
		if condition() {
			return nil
		}
		return errFalse
	})
}

// Path waits for a hot path, whose latency the report of a test run shows.
type Path struct{ hot waits.Hot }

// The hot paths, see [waits.Hot].
var (
	Detection    = Path{waits.Detection}
	Confirmation = Path{waits.Confirmation}
	Takeover     = Path{waits.Takeover}
)

// Until is [Until] with checks that follow each other closely: a long interval would be
// part of the latency that is measured.
func (p Path) Until(tb testing.TB, limit time.Duration, what string, check func() error) {
	tb.Helper()
	until(tb, &waits.Wait{What: what, Limit: limit.Seconds(), Hot: p.hot}, limit, waits.HotInterval, check)
}

func until(tb testing.TB, w *waits.Wait, limit time.Duration, interval func(attempt int) time.Duration, check func() error) {
	tb.Helper()
	began := time.Now()
	for attempt := 0; ; attempt++ {
		last := check()
		left := limit - time.Since(began)
		if last == nil || left <= 0 {
			finish(tb, w, began, last)
			return
		}
		<-time.After(min(interval(attempt), left))
	}
}

// finish records a wait, and ends the test when there is an error.
func finish(tb testing.TB, w *waits.Wait, began time.Time, last error) {
	tb.Helper()
	w.Test, w.Seconds, w.Passed = tb.Name(), time.Since(began).Seconds(), last == nil
	if err := waits.Record(w); err != nil {
		tb.Fatalf("%v", err)
	}
	if last != nil {
		tb.Fatalf("%s", w.Failure(last))
	}
}
