// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/controller/assess"
	"github.com/plumbline-dev/plumbline/internal/controller/execute"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence/volume"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
)

// as is the API server for a user with the rights that the chart gives it.
func as(user string) *rest.Config {
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:plumbline-system", "system:authenticated",
	}}
	return own
}

// running is a process within the test.
type running struct {
	name string
	stop context.CancelFunc
	done chan error
}

func startProcess(t testing.TB, name string, run func(context.Context, func()) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &running{name, cancel, make(chan error, 1)}
	ready := make(chan struct{})
	go func() { p.done <- run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() { p.halt(t) })
	select {
	case <-ready:
	case err := <-p.done:
		p.done <- err
		t.Fatalf("the %s ended at once: %v", name, err)
	case <-time.After(patience):
		t.Fatalf("the %s's caches did not sync", name)
	}
	return p
}

// halt stops a process and waits for its end; a second call does nothing.
func (p *running) halt(t testing.TB) {
	t.Helper()
	p.stop()
	select {
	case err := <-p.done:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the %s ended with an error: %v", p.name, err)
		}
		p.done <- nil
	case <-time.After(patience):
		t.Errorf("the %s does not end", p.name)
	}
}

func testLog(t testing.TB) logr.Logger {
	t.Helper()
	if testing.Verbose() {
		return testr.NewWithInterface(t, testr.Options{LogTimestamp: true, Verbosity: 0})
	}
	return logr.Discard()
}

func startAssessor(t testing.TB, options ...func(*assess.Setup)) *running {
	t.Helper()
	setup := assess.Setup{
		Config: as(assessorUser), Namespace: rendered.Namespace, Retention: time.Hour, Executor: executorUser,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: prometheus.NewRegistry(), Log: logr.Discard(), Clock: clock.RealClock{},
	}
	for _, o := range options {
		o(&setup)
	}
	return startProcess(t, "assessor", func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return assess.Run(ctx, setup)
	})
}

// evidenceStore is where a test's records are, and the keys that they are
// verified with.
type evidenceStore struct {
	writer evidence.Writer
	public []byte
}

func newEvidence(t testing.TB) evidenceStore {
	t.Helper()
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := evidence.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := evidence.ParseKeyring(public)
	if err != nil {
		t.Fatal(err)
	}
	store, err := volume.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return evidenceStore{evidence.Writer{Store: store, Signer: key, Keys: ring}, public}
}

// option changes how an executor is started.
type option func(*execute.Setup)

func startExecutor(t testing.TB, records evidenceStore, options ...option) *running {
	t.Helper()
	setup := execute.Setup{
		Config: as(executorUser), Namespace: rendered.Namespace, Evidence: records.writer,
		Builder: evidence.Builder{Version: "test"}, PublicKeys: records.public,
		Registry: prometheus.NewRegistry(), Log: testLog(t), Clock: clock.RealClock{},
	}
	for _, o := range options {
		o(&setup)
	}
	return startProcess(t, "executor", func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return execute.Run(ctx, setup)
	})
}
