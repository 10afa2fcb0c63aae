// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// as is the API server for a user with the rights that the chart gives it.
func as(user string) *rest.Config { return apiserver.Impersonate(config, user) }

func startAssessor(t testing.TB, options ...func(*assessor.Setup)) *inprocess.Process {
	t.Helper()
	setup := assessor.Setup{
		Config: as(remediation.AssessorUser), Namespace: rendered.Namespace, Retention: time.Hour, Executor: remediation.ExecutorUser,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: prometheus.NewRegistry(), Log: logr.Discard(), Clock: clock.RealClock{},
	}
	for _, o := range options {
		o(&setup)
	}
	return inprocess.Start(t, "assessor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return assessor.Run(ctx, setup)
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
	return evidenceIn(t, remediation.OpenRecords(t))
}

// evidenceIn has a key of its own for records in a store.
func evidenceIn(t testing.TB, store evidence.Store) evidenceStore {
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
	return evidenceStore{evidence.Writer{Store: store, Signer: key, Keys: ring}, public}
}

// records are where they are, for the oracle.
func (e evidenceStore) records() remediation.Records {
	return remediation.Records{Store: e.writer.Store, Keys: e.writer.Keys}
}

// option changes how an executor is started.
type option func(*executor.Setup)

func startExecutor(t testing.TB, records evidenceStore, options ...option) *inprocess.Process {
	t.Helper()
	setup := executor.Setup{
		Config: as(remediation.ExecutorUser), Namespace: rendered.Namespace, Evidence: records.writer,
		Builder: evidence.Builder{Version: "test"}, PublicKeys: records.public,
		Registry: prometheus.NewRegistry(), Log: inprocess.Log(t), Clock: clock.RealClock{},
	}
	for _, o := range options {
		o(&setup)
	}
	return inprocess.Start(t, "executor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return executor.Run(ctx, setup)
	})
}
