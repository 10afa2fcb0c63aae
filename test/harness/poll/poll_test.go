// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// recorder is a test that may fail without failing the one around it.
type recorder struct {
	testing.TB
	fatal string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome is what a wait came to.
type outcome struct {
	Fatal  string
	Took   time.Duration
	Checks int
}

// observe runs a wait on a clock of its own.
func observe(t *testing.T, wait func(testing.TB, *int)) (seen outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, done, began := &recorder{TB: t}, make(chan struct{}), time.Now()
		go func() {
			defer close(done)
			wait(r, &seen.Checks)
		}()
		<-done
		seen.Fatal, seen.Took = r.fatal, time.Since(began)
	})
	return seen
}

func TestUntil(t *testing.T) {
	passesAt := func(n int) func(testing.TB, *int) {
		return func(tb testing.TB, checks *int) {
			poll.Until(tb, 90*time.Millisecond, "it is so", func() error {
				if *checks++; *checks < n {
					return fmt.Errorf("check %d says no", *checks)
				}
				return nil
			})
		}
	}
	tests := map[string]struct {
		wait func(testing.TB, *int)
		want outcome
	}{
		"what holds already takes no time":                {passesAt(1), outcome{Checks: 1}},
		"what holds at the third look took two intervals": {passesAt(3), outcome{Checks: 3, Took: 40 * time.Millisecond}},
		"what holds at the last look is in time":          {passesAt(5), outcome{Checks: 5, Took: 80 * time.Millisecond}},
		"what never holds ends the test at the limit": {
			passesAt(1000),
			outcome{Checks: 5, Took: 90 * time.Millisecond, Fatal: "waited 90ms until it is so: check 5 says no"},
		},
		"a check under way at the limit may still pass": {
			func(tb testing.TB, checks *int) {
				poll.Until(tb, 10*time.Millisecond, "it is so", func() error {
					*checks++
					<-time.After(time.Second)
					return nil
				})
			},
			outcome{Checks: 1, Took: time.Second},
		},
		"and is the last one when it fails": {
			func(tb testing.TB, checks *int) {
				poll.Until(tb, 10*time.Millisecond, "it is so", func() error {
					*checks++
					<-time.After(time.Second)
					return errors.New("no")
				})
			},
			outcome{Checks: 1, Took: time.Second, Fatal: "waited 10ms until it is so: no"},
		},
		"a condition that never holds": {
			func(tb testing.TB, checks *int) {
				poll.True(tb, 30*time.Millisecond, "it is so", func() bool { *checks++; return false })
			},
			outcome{Checks: 2, Took: 30 * time.Millisecond, Fatal: "waited 30ms until it is so: it never came true"},
		},
		"a condition that holds": {
			func(tb testing.TB, checks *int) {
				poll.True(tb, 30*time.Millisecond, "it is so", func() bool { *checks++; return *checks == 2 })
			},
			outcome{Checks: 2, Took: 20 * time.Millisecond},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, observe(t, tc.wait)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
