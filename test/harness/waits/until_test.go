// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

func TestUntil(t *testing.T) {
	type outcome struct {
		Err    string
		Took   time.Duration
		Checks int
	}
	// passesAt passes at the n-th check, and never when n is 0.
	passesAt := func(n int) func(context.Context, int) error {
		return func(_ context.Context, check int) error {
			if check == n {
				return nil
			}
			return fmt.Errorf("check %d says no", check)
		}
	}
	tests := map[string]struct {
		check    func(context.Context, int) error
		canceled bool
		want     outcome
	}{
		"what holds already takes no time":           {check: passesAt(1), want: outcome{Checks: 1}},
		"what holds at the third check takes longer": {check: passesAt(3), want: outcome{Checks: 3, Took: 60 * time.Millisecond}},
		"what never holds fails at the limit": {
			check: passesAt(0),
			want:  outcome{Checks: 4, Took: 150 * time.Millisecond, Err: "waited 150ms (limit 150ms) until it is so; last seen: check 4 says no"},
		},
		"a check that fails for want of time is not what was seen": {
			check: func(ctx context.Context, check int) error {
				if check == 1 {
					return errors.New("not found")
				}
				<-ctx.Done()
				return ctx.Err()
			},
			want: outcome{Checks: 2, Took: 150 * time.Millisecond, Err: "waited 150ms (limit 150ms) until it is so; last seen: not found"},
		},
		"a context that is over ends the wait": {
			check: passesAt(0), canceled: true, want: outcome{Checks: 1, Err: "context canceled"},
		},
	}
	t.Setenv(waits.Variable, "")
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.canceled {
					cancel()
				}
				var got outcome
				began := time.Now()
				err := waits.Until(ctx, 150*time.Millisecond, "it is so", func(ctx context.Context) error {
					got.Checks++
					return tc.check(ctx, got.Checks)
				})
				if got.Took = time.Since(began); err != nil {
					got.Err = err.Error()
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
