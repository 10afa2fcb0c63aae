// SPDX-License-Identifier: Apache-2.0

package inprocess_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// fakeT notes what a test is told, and ends when the test asks it to.
type fakeT struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (f *fakeT) Helper() {}

func (f *fakeT) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }

func (f *fakeT) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

// test runs what a test does, up to its end or to what ends it.
func (f *fakeT) test(do func()) {
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		for i := range f.cleanups {
			f.cleanups[len(f.cleanups)-1-i]()
		}
	}()
	do()
}

func TestWhatATestIsToldOfItsProcess(t *testing.T) {
	errBroken := errors.New("it broke")
	untilStopped := func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return ctx.Err()
	}
	for name, tc := range map[string]struct {
		run      func(context.Context, func()) error
		patience time.Duration
		within   func(testing.TB, *inprocess.Process)
		want     []string
	}{
		"nothing of one that runs until the test ends": {run: untilStopped, patience: time.Minute},
		"nothing of one that is halted, even twice": {
			run: untilStopped, patience: time.Minute,
			within: func(tb testing.TB, p *inprocess.Process) { p.Halt(tb); p.Halt(tb) },
		},
		"that it ended before it was ready": {
			run: func(context.Context, func()) error { return errBroken }, patience: time.Minute,
			want: []string{"waited 0s (limit 1m0s) until the assessor is ready; last seen: it ended (it broke)", "the assessor ended with an error: it broke"},
		},
		"that it ended with an error": {
			run: func(ctx context.Context, ready func()) error {
				ready()
				<-ctx.Done()
				return errBroken
			}, patience: time.Minute,
			want: []string{"the assessor ended with an error: it broke"},
		},
		"that it is never ready": {
			run: func(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }, patience: time.Second,
			want: []string{"waited 1s (limit 1s) until the assessor is ready; last seen: it runs and is not ready"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(waits.Variable, "")
			f := &fakeT{TB: t}
			synctest.Test(t, func(*testing.T) {
				f.test(func() {
					p := inprocess.Start(f, "assessor", tc.patience, tc.run)
					if tc.within != nil {
						tc.within(f, p)
					}
				})
			})
			if diff := cmp.Diff(tc.want, f.said); diff != "" {
				t.Errorf("what the test is told (-want +got):\n%s", diff)
			}
		})
	}
}
