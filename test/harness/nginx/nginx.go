// SPDX-License-Identifier: Apache-2.0

// Package nginx runs a real nginx in tests: the one that `bin/cluster which nginx` prints.
package nginx

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit is how long an nginx may take to start, on a machine that others use too.
const limit = 10 * time.Second

// Binary is the path of the nginx that is tested with. The variable NGINX is nginx's own, for sockets that a program
// inherits.
func Binary(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("NGINX_BINARY")
	if path == "" {
		tb.Fatal(`NGINX_BINARY is not set: run this by "make test-integration", or set it to what "bin/cluster which nginx" prints`)
	}
	return path
}

// Check has nginx check a configuration, and returns all that it says.
func Check(tb testing.TB, file string) (said string, err error) {
	tb.Helper()
	command := child.Bind(exec.CommandContext(tb.Context(), Binary(tb), "-t", "-p", filepath.Dir(file), "-c", file))
	out, err := command.CombinedOutput()
	return string(out), err
}

// Program is an nginx that runs: a master and its workers, which end with the master.
type Program struct {
	tb   testing.TB
	cmd  *exec.Cmd
	log  *lines
	once sync.Once
}

// Start one with a configuration, whose PID file is nginx.pid beside it. It is stopped when the test ends.
func Start(tb testing.TB, file string) *Program {
	tb.Helper()
	folder := filepath.Dir(file)
	p := &Program{tb: tb, log: &lines{}}
	p.cmd = child.Bind(exec.Command(Binary(tb), "-p", folder, "-c", file, "-g", "daemon off;"))
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr.Setpgid = true
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	poll.Until(tb, limit, "the nginx has written its PID", func() error {
		text, err := os.ReadFile(filepath.Join(folder, "nginx.pid")) //nolint:gosec // the test's folder
		if err == nil && strings.TrimSpace(string(text)) != fmt.Sprint(p.cmd.Process.Pid) {
			err = fmt.Errorf("the file has %q", text)
		}
		return err
	})
	return p
}

// Signal the master.
func (p *Program) Signal(s syscall.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.tb.Fatal(err)
	}
}

// Stop ends the master and its workers, those that are stopped included.
func (p *Program) Stop() {
	p.once.Do(func() {
		if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			p.tb.Error(err)
		}
		_ = p.cmd.Wait() // that it was ended
		if p.tb.Failed() {
			p.tb.Logf("the nginx said:\n%s", p.log)
		}
	})
}

// Said is all that nginx has said so far.
func (p *Program) Said() string { return p.log.String() }

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
