// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Signals end a program.
type Signals struct {
	// Drain has the program end once its requests are answered, and End at once.
	Drain, End syscall.Signal
	// Orphan is the signal of the kernel when the agent was killed.
	Orphan syscall.Signal
}

// Child is the program that the agent starts.
type Child struct {
	cmd     *exec.Cmd
	signals Signals
	start   chan struct{}
	// pid is 0 before the start.
	pid atomic.Int64
}

// NewChild prepares a command whose output is the agent's.
func NewChild(command []string, signals Signals) *Child {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user's own command; Run ends it
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signals.Orphan}
	return &Child{cmd: cmd, signals: signals, start: make(chan struct{})}
}

// Start the program; called once.
func (c *Child) Start() { close(c.start) }

var errNotStarted = errors.New("finding the program: it has not started")

// PID of the program; an error before the start.
func (c *Child) PID() (int, error) {
	pid := int(c.pid.Load())
	if pid == 0 {
		return 0, errNotStarted
	}
	return pid, nil
}

// Run waits for the start, and then until the program has ended; signals that come go on to the program. When
// ctx ends, Run has the program drain, then end, with grace for each, and then kills each process of the
// program. Run returns an error if the program ends without that.
func (c *Child) Run(ctx context.Context, signals <-chan os.Signal, grace time.Duration) error {
	select {
	case <-c.start:
	case <-ctx.Done():
		return nil
	}
	ended, err := c.launch()
	if err != nil {
		return fmt.Errorf("starting the program: %w", err)
	}
	for {
		select {
		case err := <-ended:
			c.sendSignal(syscall.SIGKILL) // workers of a master that was killed may go on
			return fmt.Errorf("the program has ended: %w", errors.Join(err, errEnded))
		case s := <-signals:
			if number, is := s.(syscall.Signal); is {
				c.sendSignal(number)
			}
		case <-ctx.Done():
			return c.stop(ended, grace)
		}
	}
}

var errEnded = errors.New("the agent ends with it")

// launch returns when the program has started; ended tells how the program ends.
func (c *Child) launch() (ended <-chan error, err error) {
	started, end := make(chan error), make(chan error, 1)
	go func() {
		// The kernel kills the program when the thread ends that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		if err == nil {
			c.pid.Store(int64(c.cmd.Process.Pid))
		}
		started <- err
		if err == nil {
			end <- c.cmd.Wait()
		}
	}()
	return end, <-started
}

// killTime is how long the kernel may take to end a process that was killed, on a busy machine.
const killTime = 10 * time.Second

func (c *Child) stop(ended <-chan error, grace time.Duration) error {
	for _, sig := range []syscall.Signal{c.signals.Drain, c.signals.End, syscall.SIGKILL} {
		c.sendSignal(sig)
		if sig == syscall.SIGKILL {
			grace = killTime
		}
		select {
		case <-ended: //nolint:errcheck // The program was told to end, so each way of ending is the wanted one.
			return nil
		case <-time.After(grace):
		}
	}
	return errors.New("ending the program: it does not end")
}

// sendSignal sends a signal to the program. SIGKILL goes to the workers as well, because no master ends them then.
func (c *Child) sendSignal(s syscall.Signal) {
	target := c.cmd.Process.Pid
	if s == syscall.SIGKILL {
		target = -target
	}
	_ = syscall.Kill(target, s) // it may have ended
}
