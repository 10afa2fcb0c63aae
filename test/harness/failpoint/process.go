// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// StartAssessor runs the assessor in this process until the test ends.
func (c *Cluster) StartAssessor(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- assessor.Run(ctx, assessor.Setup{
			Config: apiserver.Impersonate(c.Config, remediation.AssessorUser), Namespace: rendered.Namespace, Retention: time.Hour,
			Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
			Executor: remediation.ExecutorUser, Registry: prometheus.NewRegistry(), Log: logr.Discard(), Clock: clock.RealClock{},
			Ready: func() { close(ready) },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the assessor ended with %v", err)
		}
	})
	poll.Ready(t, Patience, "the assessor", ready, ended)
}

// Files are what the executors of one test share.
type Files struct {
	remediation.Records
	t *testing.T
	// directory has the key, and below it the records.
	directory, key string
}

// NewFiles makes a key and a store without records.
func NewFiles(t *testing.T) *Files {
	t.Helper()
	f := &Files{t: t, directory: t.TempDir()}
	f.key = filepath.Join(f.directory, "key.pem")
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if f.Keys, err = evidence.ParseKeyring(public); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(f.key, private, 0o600), os.Mkdir(f.RecordsDirectory(), 0o750)); err != nil {
		t.Fatal(err)
	}
	if f.Store, err = volume.Open(f.RecordsDirectory()); err != nil {
		t.Fatal(err)
	}
	return f
}

// RecordsDirectory is where the records are.
func (f *Files) RecordsDirectory() string { return filepath.Join(f.directory, "records") }

// Release lets a late write go.
func (f *Files) Release() {
	f.t.Helper()
	if err := os.WriteFile(f.releasePath(), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *Files) releasePath() string { return filepath.Join(f.directory, "release") }

// Executor is a process that carries plans out.
type Executor struct {
	*server.Process
	t       *testing.T
	journal string
}

// Start starts an executor with a fault, see cmd/assessor/failpoint.go. Later flags
// hold over those that every executor has here.
func (c *Cluster) Start(t *testing.T, f *Files, fault string, flags ...string) *Executor {
	t.Helper()
	e := &Executor{t: t, journal: filepath.Join(t.TempDir(), "journal")}
	flags = append([]string{
		"--role=execute", "--kubeconfig=" + c.kubeconfig, "--namespace=" + rendered.Namespace, "--leader-elect=false",
		"--evidence=file://" + f.RecordsDirectory(), "--evidence-key-file=" + f.key,
	}, flags...)
	environment := []string{
		"PLUMBLINE_FAILPOINT=" + fault, "PLUMBLINE_FAILPOINT_JOURNAL=" + e.journal, "PLUMBLINE_FAILPOINT_RELEASE=" + f.releasePath(),
		"POD_NAME=" + filepath.Base(filepath.Dir(e.journal)),
	}
	p, err := server.StartWith(environment, c.binary, flags...)
	if err != nil {
		t.Fatal(err)
	}
	e.Process = p
	t.Cleanup(func() {
		_ = p.Kill() // it may have ended, or be stopped
		if t.Failed() {
			t.Logf("an executor with the fault %q wrote:\n%s\nand said:\n%s", fault, strings.Join(e.Writes(), "\n"), p.Said())
		}
	})
	return e
}

// Writes are what an executor wrote, or was about to, in order.
func (e *Executor) Writes() []string { return e.told("write") }

// LateAnswers says what the API server answered to a write that came late.
func (e *Executor) LateAnswers() []string { return e.told("late") }

func (e *Executor) told(kind string) []string {
	raw, err := os.ReadFile(e.journal)
	if err != nil {
		return nil // it did not get as far
	}
	var told []string
	for line := range strings.Lines(string(raw)) {
		if about, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); about == kind {
			told = append(told, what)
		}
	}
	return told
}

// UntilKilled waits until a failpoint has killed the executor.
func (e *Executor) UntilKilled() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), Patience)
	defer cancel()
	how, err := e.Exited(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	exit := (*exec.ExitError)(nil)
	if !errors.As(how, &exit) {
		e.t.Fatalf("it ended with %v", how)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		e.t.Fatalf("it ended by itself: %v\n%s", how, e.Said())
	}
}

// UntilWrite waits until an executor has made a write, or was about to.
func (e *Executor) UntilWrite(write string) {
	e.t.Helper()
	poll.True(e.t, Patience, "it comes to "+write, func() bool { return slices.Contains(e.Writes(), write) })
}

// UntilStopped waits until a failpoint has stopped the executor.
func (e *Executor) UntilStopped() {
	e.t.Helper()
	poll.Until(e.t, Patience, "it is stopped", func() error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.PID()))
		if err != nil {
			return err
		}
		if _, state, _ := strings.Cut(string(raw), ") "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("its state is %.1s; it wrote %q", state, e.Writes())
		}
		return nil
	})
}

// GoOn lets a stopped executor go on.
func (e *Executor) GoOn() {
	e.t.Helper()
	if err := e.Signal(syscall.SIGCONT); err != nil {
		e.t.Fatal(err)
	}
}

// UntilRefused waits until the API server has refused a write of the executor as outdated.
func (e *Executor) UntilRefused() {
	e.t.Helper()
	e.untilAnswered("a write is refused", `code="409"`)
}

// UntilForbidden waits until a policy of the API server has refused a creation of the
// executor.
func (e *Executor) UntilForbidden() {
	e.t.Helper()
	e.untilAnswered("a creation is forbidden", `code="403"`, `method="POST"`)
}

func (e *Executor) untilAnswered(what string, labels ...string) {
	e.t.Helper()
	poll.Until(e.t, Patience, what, func() error {
		n, err := e.Metric(e.t.Context(), "plumbline_api_requests_total", labels...)
		if err == nil && n < 1 {
			err = fmt.Errorf("%v were", n)
		}
		return err
	})
}

// UntilFailed waits until an executor has ended with an error.
func (e *Executor) UntilFailed() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), Patience)
	defer cancel()
	how, err := e.Exited(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	if how == nil {
		e.t.Error("it ended as if all were well")
	}
}
