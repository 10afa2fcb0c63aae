// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Child is the program that the agent starts.
type Child struct {
	cmd   *exec.Cmd
	start chan struct{}
}

// NewChild prepares a command whose output is the agent's.
func NewChild(command []string) *Child {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user's own command; Run ends it
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return &Child{cmd: cmd, start: make(chan struct{})}
}

// Start the program; called once.
func (c *Child) Start() { close(c.start) }

// Run waits for the start, and then until the program has ended. When ctx ends the program is asked to
// end once its requests are answered, then to end, and after grace each process of its is killed. It
// returns an error if the program ends without that.
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
			return fmt.Errorf("the program has ended: %w", errors.Join(err, errEnded))
		case s := <-signals:
			if number, is := s.(syscall.Signal); is {
				_ = c.cmd.Process.Signal(number) // it may end right now
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
		started <- err
		if err == nil {
			end <- c.cmd.Wait()
		}
	}()
	return end, <-started
}

func (c *Child) stop(ended <-chan error, grace time.Duration) error {
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGKILL} {
		target := c.cmd.Process.Pid
		if s == syscall.SIGKILL {
			target = -target // its workers as well
		}
		_ = syscall.Kill(target, s) // it may have ended
		select {
		case <-ended: //nolint:errcheck // The program was told to end, so each way of ending is the wanted one.
			return nil
		case <-time.After(grace):
		}
	}
	return errors.New("ending the program: it does not end")
}
