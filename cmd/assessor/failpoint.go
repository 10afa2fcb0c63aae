// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/executor"
)

// What the environment says. PLUMBLINE_FAILPOINT is a list, separated by semicolons, of
//
//	kill:before:WRITE   die before it is sent
//	kill:after:WRITE    die when it has been answered
//	stop:before:WRITE   stop as by SIGSTOP before it is sent; it is sent after SIGCONT
//	stop:after:WRITE    stop when it has been answered
//	lose:after:WRITE    send it, and throw the answer away
//	late:before:WRITE   give no answer, and send it when the file of failpointRelease is there
//	mute                store no record, and say that it is stored
//	clock:1h            be an hour ahead; clock:-1h is behind
//	lease:3s            lead by a lease of three seconds instead of fifteen
//	probe:1ms           believe no answer of the evidence store that is older than 1 ms
//
// WRITE is the name of a write as the journal has it, and the first one of that name
// is meant. Writes are requests that change a plan, a ledger, a claim, an Environment
// or a target, and records of evidence. What says nothing about a plan is none:
// leases, Events, reviews, dry runs, the published keys.
const (
	failpointVariable = "PLUMBLINE_FAILPOINT"
	// failpointJournal names a file to which every write adds a line.
	failpointJournal = "PLUMBLINE_FAILPOINT_JOURNAL"
	failpointRelease = "PLUMBLINE_FAILPOINT_RELEASE"
)

// The acts of a failpoint, and when they happen.
const (
	actKill = "kill"
	actStop = "stop"
	actLose = "lose"
	actLate = "late"

	whenBefore = "before"
	whenAfter  = "after"
)

// failpoint says what goes wrong at one write.
type failpoint struct{ act, when, write string }

// failpoints count writes and let one of them go wrong.
type failpoints struct {
	points  []failpoint
	mute    bool
	clock   time.Duration
	lease   time.Duration
	probe   time.Duration
	release string

	mu      sync.Mutex
	journal *os.File
}

// underFaults has the executor fail as the environment says.
func underFaults(setup *executor.Setup) error {
	f := &failpoints{release: os.Getenv(failpointRelease)}
	for text := range strings.SplitSeq(os.Getenv(failpointVariable), ";") {
		if err := f.parse(text); err != nil {
			return fmt.Errorf("reading %s: %w", failpointVariable, err)
		}
	}
	if path := os.Getenv(failpointJournal); path != "" {
		journal, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("opening the journal of writes: %w", err)
		}
		f.journal = journal
	}
	setup.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &failingTransport{next, f} })
	setup.Evidence.Store = &failingStore{setup.Evidence.Store, f}
	if f.clock != 0 {
		setup.Clock = clockOff{by: f.clock}
	}
	setup.LeaseDuration, setup.ProbeInterval = f.lease, f.probe
	return nil
}

var errFailpoint = errors.New("is not one of kill:before:WRITE, kill:after:WRITE, stop:before:WRITE, stop:after:WRITE, lose:after:WRITE, late:before:WRITE, mute, clock:1h, lease:3s, probe:1ms")

// moments at which each act can happen.
var moments = map[string][]string{
	actKill: {whenBefore, whenAfter}, actStop: {whenBefore, whenAfter}, actLose: {whenAfter}, actLate: {whenBefore},
}

func (f *failpoints) parse(text string) (err error) {
	act, rest, _ := strings.Cut(text, ":")
	when, write, _ := strings.Cut(rest, ":")
	switch {
	case text == "":
	case text == "mute":
		f.mute = true
	case act == "clock":
		f.clock, err = time.ParseDuration(rest)
	case act == "lease":
		f.lease, err = time.ParseDuration(rest)
	case act == "probe":
		f.probe, err = time.ParseDuration(rest)
	case slices.Contains(moments[act], when) && write != "":
		f.points = append(f.points, failpoint{act, when, write})
	default:
		err = fmt.Errorf("%s: %w", text, errFailpoint)
	}
	return err
}

// reached notes a write, and returns what is to go wrong with it.
func (f *failpoints) reached(write string) failpoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("write", write)
	for i, p := range f.points {
		if p.write == write {
			f.points = slices.Delete(f.points, i, i+1)
			return p
		}
	}
	return failpoint{}
}

// restore has a point that nothing came of go wrong at the next write of its name.
func (f *failpoints) restore(p failpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.points = append(f.points, p)
}

// note adds a line to the journal. It is in the kernel's hands when this returns,
// so it is there although the process is killed.
func (f *failpoints) note(parts ...string) {
	if f.journal == nil {
		return
	}
	if _, err := f.journal.WriteString(strings.Join(parts, "\t") + "\n"); err != nil {
		panic("writing the journal of writes: " + err.Error()) // the test would believe it
	}
}

// at carries out what happens before or after a write.
func (p failpoint) at(when string) {
	if p.when != when {
		return
	}
	switch p.act {
	case actKill:
		signalThread(syscall.SIGKILL)
	case actStop:
		signalThread(syscall.SIGSTOP)
	}
}

// signalThread sends a signal to this very thread, so that it is delivered before
// anything else is done here; the whole process dies or stops by it.
func signalThread(signal syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Tgkill(os.Getpid(), syscall.Gettid(), signal); err != nil {
		panic("a failpoint cannot send a signal: " + err.Error())
	}
}

// clockOff is the real clock but for what time it says it is. Timers run in real
// time, as they do where only the wall clock is wrong.
type clockOff struct {
	clock.RealClock
	by time.Duration
}

// Now implements clock.PassiveClock.
func (c clockOff) Now() time.Time { return time.Now().Add(c.by) }

// Since implements clock.PassiveClock.
func (c clockOff) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
