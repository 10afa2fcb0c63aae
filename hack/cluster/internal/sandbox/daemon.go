// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

// start begins a daemon whose output goes to its log file. os/exec is not used,
// because its Wait would compete with the reaper for exit statuses.
func (f *firstProcess) start(p plan.Process) error {
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }() // the daemon has its own descriptor
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fmt.Errorf("opening the input of %s: %w", p.Name, err)
	}
	defer func() { _ = null.Close() }()
	f.mu.Lock() // until the name is noted, the reaper must not look for it
	defer f.mu.Unlock()
	pid, err := syscall.ForkExec(p.Path, append([]string{p.Path}, p.Args...), &syscall.ProcAttr{
		Dir:   "/",
		Env:   p.Env,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Path, err)
	}
	f.daemons[pid] = p.Name
	return nil
}

// reap collects every process that ends: the daemons, and the orphans of the
// whole pid namespace, which become children of process 1.
func (f *firstProcess) reap() {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for ; ; <-children {
		for f.reapOne() {
		}
	}
}

func (f *firstProcess) reapOne() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if name, ours := f.daemons[pid]; ours {
		delete(f.daemons, pid)
		f.noteExit(name, describe(status))
	}
	return true
}

// noteExit leaves the news where a later health check finds it. A daemon is not
// started again: a cluster for tests that hides a crash would hide a defect.
func (f *firstProcess) noteExit(name, status string) {
	if err := os.WriteFile(filepath.Join(f.exits, name), []byte(status+"\n"), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "noting that %s ended (%s): %v\n", name, status, err)
	}
	f.report(report{Exited: name, Status: status})
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + status.Signal().String()
	}
	return fmt.Sprintf("exited with status %d", status.ExitStatus())
}
