// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/controller/assess"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence/volume"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// startAssessor runs the assessor in this process until the test ends.
func (c *cluster) startAssessor(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- assess.Run(ctx, assess.Setup{
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
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("the assessor did not start: %v", err)
	case <-time.After(patience):
		t.Fatal("the assessor is never ready")
	}
}

// files are what the executors of one test share.
type files struct {
	remediation.Records
	t *testing.T
	// directory has the key, and below it the records.
	directory, key string
}

func newFiles(t *testing.T) *files {
	t.Helper()
	f := &files{t: t, directory: t.TempDir()}
	f.key = filepath.Join(f.directory, "key.pem")
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	if f.Keys, err = evidence.ParseKeyring(public); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(f.key, private, 0o600), os.Mkdir(f.records(), 0o750)); err != nil {
		t.Fatal(err)
	}
	if f.Store, err = volume.Open(f.records()); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *files) records() string { return filepath.Join(f.directory, "records") }

// release lets a late write go.
func (f *files) release() {
	f.t.Helper()
	if err := os.WriteFile(f.releasePath(), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) releasePath() string { return filepath.Join(f.directory, "release") }

// executor is a process that carries plans out.
type executor struct {
	*server.Process
	t       *testing.T
	journal string
}

// start starts an executor with a fault, see cmd/assessor/failpoint.go. Later flags
// hold over those that every executor has here.
func (c *cluster) start(t *testing.T, f *files, fault string, flags ...string) *executor {
	t.Helper()
	e := &executor{t: t, journal: filepath.Join(t.TempDir(), "journal")}
	flags = append([]string{
		"--role=execute", "--kubeconfig=" + c.kubeconfig, "--namespace=" + rendered.Namespace, "--leader-elect=false",
		"--evidence=file://" + f.records(), "--evidence-key-file=" + f.key,
	}, flags...)
	environment := []string{
		"PLUMBLINE_FAILPOINT=" + fault, "PLUMBLINE_FAILPOINT_JOURNAL=" + e.journal, "PLUMBLINE_FAILPOINT_RELEASE=" + f.releasePath(),
		"POD_NAME=" + filepath.Base(filepath.Dir(e.journal)),
	}
	p, err := server.StartWith(environment, binary, flags...)
	if err != nil {
		t.Fatal(err)
	}
	e.Process = p
	t.Cleanup(func() {
		_ = p.Kill() // it may have ended, or be stopped
		if t.Failed() {
			t.Logf("an executor with the fault %q wrote:\n%s\nand said:\n%s", fault, strings.Join(e.writes(), "\n"), p.Said())
		}
	})
	return e
}

// writes are what an executor wrote, or was about to, in order.
func (e *executor) writes() []string { return e.told("write") }

// late says what the API server answered to a write that came late.
func (e *executor) late() []string { return e.told("late") }

func (e *executor) told(kind string) []string {
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

// killed waits until a failpoint has killed the executor.
func (e *executor) killed() {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
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
