// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

var errNothing = errors.New("nothing came")

// Receive waits for a value from a channel, or for its end, and ends the test when that
// takes longer than limit.
func Receive[T any](tb testing.TB, limit time.Duration, what string, from <-chan T) (got T) {
	tb.Helper()
	w, began, last := &waits.Wait{What: what, Limit: limit.Seconds()}, time.Now(), error(nil)
	select {
	case got = <-from:
	case <-time.After(limit):
		last = errNothing
	}
	finish(tb, w, began, last)
	return got
}

// Ready waits until a process of this test says that it is ready. It ends the test when
// that takes longer than limit, and when the process ends first. The channel ended has
// room for the error of the process; Ready puts that error back for a cleanup that waits
// for the end.
func Ready(tb testing.TB, limit time.Duration, process string, ready <-chan struct{}, ended chan error) {
	tb.Helper()
	w, began, last := &waits.Wait{What: process + " is ready", Limit: limit.Seconds()}, time.Now(), error(nil)
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		last = fmt.Errorf("it ended (%w)", errOrNone(err))
	case <-time.After(limit):
		last = errors.New("it runs and is not ready")
	}
	finish(tb, w, began, last)
}

func errOrNone(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}
