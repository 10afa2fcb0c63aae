// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// InitCommand is the hidden subcommand that runs [Init].
const InitCommand = "first-process"

// Exit says that a daemon has ended.
type Exit struct{ Name, Status string }

// Launcher is the host's side of a sandbox during bring-up.
type Launcher struct {
	Pid int // of the first process, on the host

	owned   bool // the first process has a lifeline
	command *exec.Cmd
	orders  io.WriteCloser
	replies chan report // answers to orders, in order
	exits   chan Exit
	ended   chan struct{} // the reports have ended
}

// Launch starts the first process in new namespaces, with its diagnostics going
// to the file log. owner is a process with which the cluster ends even after the
// commit; 0 is none. The caller must end with [Launcher.Commit] or [Launcher.Abort].
func Launch(log string, owner int) (*Launcher, error) {
	logFile, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the first process's log: %w", err)
	}
	defer func() { _ = logFile.Close() }()
	reports, reportsInside, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("creating a pipe: %w", err)
	}
	defer func() { _ = reportsInside.Close() }()
	// The link works even when "go run" has removed the executable's path.
	command := exec.Command("/proc/self/exe", InitCommand)
	command.Stdout, command.Stderr = logFile, logFile
	command.ExtraFiles = []*os.File{reportsInside}
	if owner != 0 {
		lifeline, err := openLifeline(owner)
		if err != nil {
			return nil, errors.Join(err, reports.Close())
		}
		defer func() { _ = lifeline.Close() }()
		command.ExtraFiles = append(command.ExtraFiles, lifeline)
	}
	command.Env = []string{}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: Namespaces,
		Setsid:     true, // ctrl-C is for the launcher, which then cleans up
	}
	orders, err := command.StdinPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating a pipe: %w", err), reports.Close())
	}
	if err := command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a process in new namespaces: %w", err), reports.Close())
	}
	launcher := &Launcher{
		Pid: command.Process.Pid, owned: owner != 0, command: command, orders: orders,
		replies: make(chan report, 1), exits: make(chan Exit, 16), ended: make(chan struct{}),
	}
	go launcher.listen(reports)
	return launcher, nil
}

// Namespaces are the kinds of namespace that a cluster has for itself. User
// namespaces are not among them: the kubelet needs to be root on the host.
const Namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

func (l *Launcher) listen(reports io.ReadCloser) {
	defer func() { _ = reports.Close() }()
	defer close(l.ended)
	decoder := json.NewDecoder(reports)
	for {
		var r report
		if decoder.Decode(&r) != nil {
			return // the first process has ended, or was committed
		}
		if r.Exited == "" {
			l.replies <- r
			continue
		}
		select {
		case l.exits <- Exit{Name: r.Exited, Status: r.Status}:
		default: // sixteen exits are enough to know that bring-up has failed
		}
	}
}

// Exits delivers the daemons that end during bring-up.
func (l *Launcher) Exits() <-chan Exit { return l.exits }

// SetUp makes the namespaces ready; the link must be in place.
func (l *Launcher) SetUp(ctx context.Context, s plan.Sandbox) error {
	return l.order(ctx, order{Setup: &s})
}

// Start begins a daemon.
func (l *Launcher) Start(ctx context.Context, p plan.Process) error {
	return l.order(ctx, order{Start: &p})
}

// Commit lets the cluster live on without the launcher.
func (l *Launcher) Commit(ctx context.Context) error {
	if err := l.order(ctx, order{Commit: true, Owned: l.owned}); err != nil {
		return err
	}
	if err := l.orders.Close(); err != nil {
		return fmt.Errorf("closing the orders: %w", err)
	}
	return l.command.Process.Release()
}

// Abort ends the first process, with it everything in the cluster, and waits
// until the kernel has killed the last of it.
func (l *Launcher) Abort() error {
	if err := l.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing the first process: %w", err)
	}
	var ended *exec.ExitError
	if err := l.command.Wait(); err != nil && !errors.As(err, &ended) {
		return fmt.Errorf("waiting for the first process: %w", err)
	}
	return nil
}

func (l *Launcher) order(ctx context.Context, o order) error {
	if err := json.NewEncoder(l.orders).Encode(o); err != nil {
		return fmt.Errorf("instructing the first process: %w", err)
	}
	select {
	case r := <-l.replies:
		if r.Error != "" {
			return errors.New(r.Error)
		}
		return nil
	case <-l.ended:
		return errors.New("the first process ended unexpectedly")
	case <-ctx.Done():
		return ctx.Err()
	}
}
