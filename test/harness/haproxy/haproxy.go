// SPDX-License-Identifier: Apache-2.0

// Package haproxy runs a real HAProxy in tests: the one that `bin/cluster which haproxy` prints.
package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/connector/haproxy/runtimeapi"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit is how long a HAProxy may take to start or to reload, on a machine that others use too.
const limit = 30 * time.Second

// Binary is the path of the HAProxy that is tested with.
func Binary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("HAPROXY")
	if path == "" {
		tb.Fatal(`HAPROXY is not set: run this by "make test-integration", or set it to what "bin/cluster which haproxy" prints`)
	}
	return path
}

// Check has HAProxy check configurations that are loaded in this order, and returns all that it says.
func Check(tb testing.TB, files ...string) (said string, err error) {
	tb.Helper()
	out, err := child.Bind(exec.CommandContext(tb.Context(), Binary(tb), append([]string{"-c"}, arguments(files)...)...)).CombinedOutput()
	return string(out), err
}

func arguments(files []string) []string {
	var all []string
	for _, f := range files {
		all = append(all, "-f", f)
	}
	return all
}

// Program is a HAProxy that runs: a master and its workers, which end with the master.
type Program struct {
	tb   testing.TB
	cmd  *exec.Cmd
	log  *lines
	once sync.Once
	// Master is the path of the master's socket.
	Master string
}

// Start one with configurations. It is stopped when the test ends.
func Start(tb testing.TB, files ...string) *Program {
	tb.Helper()
	folder, err := os.MkdirTemp("", "haproxy") //nolint:usetesting // the path of a socket has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := &Program{tb: tb, log: &lines{}, Master: filepath.Join(folder, "master")}
	p.cmd = child.Bind(exec.Command(Binary(tb), append([]string{"-W", "-S", p.Master}, arguments(files)...)...))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	poll.Until(tb, limit, "the HAProxy has a worker", func() error {
		_, err := p.worker(context.WithoutCancel(tb.Context()))
		return err
	})
	return p
}

// worker is the PID of the present one.
func (p *Program) worker(ctx context.Context) (int, error) {
	present, _, err := runtimeapi.Client{Socket: p.Master}.Workers(ctx)
	if err != nil {
		return 0, err
	}
	if len(present) != 1 {
		return 0, fmt.Errorf("it has workers %v", present)
	}
	_, err = runtimeapi.Client{Socket: p.Master, PID: present[0]}.Info(ctx)
	return present[0], err
}

// Worker is a client of the present worker.
func (p *Program) Worker() runtimeapi.Client {
	p.tb.Helper()
	pid, err := p.worker(p.tb.Context())
	if err != nil {
		p.tb.Fatal(err)
	}
	return runtimeapi.Client{Socket: p.Master, PID: pid}
}

// Reload has it load its configurations anew, and waits for the new worker.
func (p *Program) Reload() {
	p.tb.Helper()
	before, err := p.worker(p.tb.Context())
	if err != nil {
		p.tb.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		p.tb.Fatal(err)
	}
	poll.Until(p.tb, limit, "the HAProxy has another worker", func() error {
		now, err := p.worker(p.tb.Context())
		if err == nil && now == before {
			err = errors.New("it has the worker of before")
		}
		return err
	})
}

// Stop ends it.
func (p *Program) Stop() {
	p.once.Do(func() {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			p.tb.Error(err)
		}
		_ = p.cmd.Wait() // that it was ended
		if p.tb.Failed() {
			p.tb.Logf("the HAProxy said:\n%s", p.log)
		}
	})
}

// lines is a log that is read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(l.text.String())
}
