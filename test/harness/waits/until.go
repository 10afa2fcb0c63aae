// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"context"
	"errors"
	"time"
)

// TimeoutError says what was waited for in vain, and what was last seen.
type TimeoutError struct {
	Wait Wait
	Last error
}

func (e *TimeoutError) Error() string { return e.Wait.Failure(e.Last) }

// Unwrap returns what the last check in time said.
func (e *TimeoutError) Unwrap() error { return e.Last }

var (
	errLimit   = errors.New("the limit is over")
	errNothing = errors.New("nothing yet")
)

// Until makes a check again and again until it passes, for helpers that have no test:
// tests have package poll. Until fails with a [TimeoutError] after limit, and with the
// error of the context when the context ends first. A check has the time that is left.
func Until(ctx context.Context, limit time.Duration, what string, check func(context.Context) error) error {
	began := time.Now()
	last, err := repeat(ctx, limit, check)
	w := Wait{What: what, Limit: limit.Seconds(), Seconds: time.Since(began).Seconds(), Passed: err == nil}
	if errors.Is(err, errLimit) {
		err = &TimeoutError{Wait: w, Last: last}
	}
	return errors.Join(err, Record(&w))
}

func repeat(ctx context.Context, limit time.Duration, check func(context.Context) error) (last, err error) {
	deadline, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	last = errNothing
	for attempt := 0; ; attempt++ {
		saw := check(deadline)
		if saw == nil {
			return nil, nil
		}
		if deadline.Err() == nil { // what fails for want of time says nothing
			last = saw
		}
		select {
		case <-deadline.Done():
			return last, context.Cause(deadline)
		case <-time.After(Interval(attempt)):
		}
	}
}
