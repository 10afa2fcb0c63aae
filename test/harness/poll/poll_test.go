// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
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
	t.Setenv(waits.Variable, "")
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
		"what holds at the third look took two intervals": {passesAt(3), outcome{Checks: 3, Took: 60 * time.Millisecond}},
		"what holds at the last look is in time":          {passesAt(4), outcome{Checks: 4, Took: 90 * time.Millisecond}},
		"what never holds ends the test at the limit": {
			passesAt(1000),
			outcome{Checks: 4, Took: 90 * time.Millisecond, Fatal: "waited 90ms (limit 90ms) until it is so; last seen: check 4 says no"},
		},
		"a hot path is checked at short intervals": {
			func(tb testing.TB, checks *int) {
				poll.Detection.Until(tb, time.Second, "it is so", func() error {
					if *checks++; *checks < 11 {
						return errors.New("no")
					}
					return nil
				})
			},
			outcome{Checks: 11, Took: 131 * time.Millisecond},
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
			outcome{Checks: 1, Took: time.Second, Fatal: "waited 1s (limit 10ms) until it is so; last seen: no"},
		},
		"a condition that never holds": {
			func(tb testing.TB, checks *int) {
				poll.True(tb, 30*time.Millisecond, "it is so", func() bool { *checks++; return false })
			},
			outcome{Checks: 3, Took: 30 * time.Millisecond, Fatal: "waited 30ms (limit 30ms) until it is so; last seen: it never came true"},
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

func TestChannels(t *testing.T) {
	closed, failed := make(chan struct{}), errors.New("no port")
	close(closed)
	tests := map[string]struct {
		wait func(testing.TB, *int)
		want outcome
	}{
		"a value that is there takes no time": {
			func(tb testing.TB, checks *int) {
				from := make(chan int, 1)
				from <- 7
				*checks = poll.Receive(tb, time.Second, "a number comes", from)
			},
			outcome{Checks: 7},
		},
		"a channel that never tells ends the test at the limit": {
			func(tb testing.TB, _ *int) { poll.Receive(tb, time.Second, "a number comes", make(chan int)) },
			outcome{Took: time.Second, Fatal: "waited 1s (limit 1s) until a number comes; last seen: nothing came"},
		},
		"a process that is ready": {
			func(tb testing.TB, _ *int) { poll.Ready(tb, time.Second, "the server", closed, make(chan error, 1)) },
			outcome{},
		},
		"a process that ends first, and leaves its error to the cleanup": {
			func(tb testing.TB, checks *int) {
				ended := make(chan error, 1)
				ended <- failed
				defer func() { *checks = len(ended) }()
				poll.Ready(tb, time.Second, "the server", nil, ended)
			},
			outcome{Checks: 1, Fatal: "waited 0s (limit 1s) until the server is ready; last seen: it ended (no port)"},
		},
		"a process that ends first without an error": {
			func(tb testing.TB, _ *int) {
				ended := make(chan error, 1)
				ended <- nil
				poll.Ready(tb, time.Second, "the server", nil, ended)
			},
			outcome{Fatal: "waited 0s (limit 1s) until the server is ready; last seen: it ended (without an error)"},
		},
		"a process that does neither": {
			func(tb testing.TB, _ *int) { poll.Ready(tb, time.Second, "the server", nil, make(chan error, 1)) },
			outcome{Took: time.Second, Fatal: "waited 1s (limit 1s) until the server is ready; last seen: it runs and is not ready"},
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

func TestEachWaitIsRecorded(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(waits.Variable, folder)
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(60 * time.Millisecond)
		poll.True(t, time.Second, "it is late", func() bool { return !time.Now().Before(at) })
		poll.Takeover.Until(t, time.Minute, "another one leads", func() error { return nil })
		done := make(chan struct{})
		go func() {
			defer close(done)
			poll.Receive(&recorder{TB: t}, time.Second, "a number comes", make(chan int))
		}()
		<-done
	})
	got, err := waits.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []waits.Wait{
		{Package: "poll", Test: t.Name(), What: "it is late", Seconds: 0.06, Limit: 1, Passed: true},
		{Package: "poll", Test: t.Name(), What: "another one leads", Limit: 60, Passed: true, Hot: waits.Takeover},
		{Package: "poll", Test: t.Name(), What: "a number comes", Seconds: 1, Limit: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWaitThatCannotBeRecordedEndsTheTest(t *testing.T) {
	t.Setenv(waits.Variable, "/no/such/folder")
	r, done := &recorder{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		poll.True(r, time.Second, "it is so", func() bool { return true })
	}()
	<-done
	if !strings.Contains(r.fatal, waits.Variable) {
		t.Errorf("it said %q", r.fatal)
	}
}
