// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Signal sends a signal, e.g. SIGSTOP for a process that hangs.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %s to %s: %w", sig, p.cmd.Path, err)
	}
	return nil
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
