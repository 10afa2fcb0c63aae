// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/procfs"
)

// stopsWithin bounds the wait for a process to stop: its threads stop one by one, and may serve a request meanwhile.
const stopsWithin = 10 * time.Second

// Signal sends a signal, e.g. SIGSTOP for a process that hangs. It returns when a process that gets SIGSTOP has stopped.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %s to %s: %w", sig, p.cmd.Path, err)
	}
	if sig != syscall.SIGSTOP {
		return nil
	}
	for limit := time.Now().Add(stopsWithin); ; <-time.After(time.Millisecond) {
		stat, err := procfs.ReadStat(p.PID())
		if err != nil {
			return fmt.Errorf("waiting for %s to stop: %w", p.cmd.Path, err)
		}
		if stat.State == "T" {
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("waited %s for %s to stop: its state is %s", stopsWithin, p.cmd.Path, stat.State)
		}
	}
}

// Kill ends the process at once, wherever it is, and waits for its end. A
// stopped process is killed too.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.cmd.Path, err)
	}
	err := <-p.exited // "signal: killed" is what is wanted
	p.exited <- err
	return nil
}

// Exited waits until the process ends by itself, and returns how: nil is success.
// It fails with the context's error when that ends first.
func (p *Process) Exited(ctx context.Context) (how, err error) {
	select {
	case how = <-p.exited:
		p.exited <- how
		return how, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the end of %s: %w", p.cmd.Path, ctx.Err())
	}
}

// PID is the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }
