// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// interval is short against what is waited for, and long against a check, which
// is a request as a rule.
const interval = 20 * time.Millisecond

// errFalse is all that a condition tells.
var errFalse = errors.New("it never came true")

// Until makes a check again and again until it passes, and ends the test with
// its last error when that takes longer than limit. A check under way is not
// interrupted. It works in Cleanup too, where the test's own context is over.
func Until(tb testing.TB, limit time.Duration, what string, check func() error) {
	tb.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), interval, limit, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		tb.Fatalf("waited %s until %s: %v", limit, what, last)
	}
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
