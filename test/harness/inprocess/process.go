// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// Process runs within the test.
type Process struct {
	name     string
	patience time.Duration
	stop     context.CancelFunc
	done     chan error
}

// Start runs a process until the test ends or it is halted. It returns once the
// process has said that it is ready; one that is not within patience ends the test.
func Start(tb testing.TB, name string, patience time.Duration, run func(ctx context.Context, ready func()) error) *Process {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{name, patience, cancel, make(chan error, 1)}
	ready := make(chan struct{})
	go func() { p.done <- run(ctx, func() { close(ready) }) }()
	tb.Cleanup(func() { p.Halt(tb) })
	poll.Ready(tb, patience, "the "+name, ready, p.done)
	return p
}

// Halt stops a process and waits for its end; a second call does nothing.
func (p *Process) Halt(tb testing.TB) {
	tb.Helper()
	p.stop()
	if err := poll.Receive(tb, p.patience, "the "+p.name+" has ended", p.done); err != nil && !errors.Is(err, context.Canceled) {
		tb.Errorf("the %s ended with an error: %v", p.name, err)
	}
	p.done <- nil
}

// Log goes to a test that is verbose, and nowhere else.
func Log(tb testing.TB) logr.Logger {
	tb.Helper()
	if !testing.Verbose() {
		return logr.Discard()
	}
	return testr.NewWithInterface(safeT{tb}, testr.Options{LogTimestamp: true})
}

// Told goes to a test, verbose or not.
func Told(tb testing.TB) logr.Logger {
	tb.Helper()
	return testr.NewWithInterface(safeT{tb}, testr.Options{})
}

// safeT drops what is logged while the test is ending.
type safeT struct{ testing.TB }

// Log implements testr.TestingT.
func (s safeT) Log(args ...any) {
	select {
	case <-s.Context().Done():
	default:
		s.TB.Log(args...)
	}
}
