// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redisguard

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

func TestMain(m *testing.M) {
	details.SetClientLog(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const (
	// patience bounds every wait, and calls of tests that are not about time.
	patience = 10 * time.Second
	prefix   = "plumbline"
	name     = "production"
	uid      = "6f1c2a5e-0000-4000-8000-000000000001"
	copyKey  = prefix + ":mirror:{" + name + "/" + uid + "}"
)

// epoch is what callers say that the time is. It is not the time of the server
// below: whatever Redis's clock says, nothing here depends on it.
var epoch = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// stand is a real redis-server and a patient mirror on it.
type stand struct {
	*redisguard.Mirror
	redis     *server.Redis
	admin     *redis.Client
	directory string
}

func newStand(tb testing.TB, options ...string) *stand {
	tb.Helper()
	// The path of a unix socket has at most 107 bytes; that of tb.TempDir has more.
	directory, err := os.MkdirTemp("", "plrg") //nolint:usetesting // see above
	must(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
	s := &stand{directory: directory}
	s.start(tb, options...)
	tb.Cleanup(func() { s.redis.Kill() }) // not bound now: it may be another one by then
	s.admin = s.redis.Client()
	tb.Cleanup(func() { _ = s.admin.Close() }) // its server goes away with it
	s.Mirror = mirror(tb, details.Config{Address: s.redis.Socket, CallBudget: patience}, redisguard.Config{Budget: patience})
	return s
}

// start starts the server, once more after a kill.
func (s *stand) start(tb testing.TB, options ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	running, err := server.StartRedis(ctx, s.directory, options...)
	must(tb, err)
	s.redis = running
}

func mirror(tb testing.TB, where details.Config, cfg redisguard.Config) *redisguard.Mirror {
	tb.Helper()
	client := details.NewClient(where)
	tb.Cleanup(func() { _ = client.Close() }) // only read
	cfg.Prefix = prefix
	return redisguard.New(client, cfg)
}

// onPort are options of a server that listens on a port of loopback too.
func onPort(tb testing.TB) (address string, options []string) {
	tb.Helper()
	port := freeport.For(tb)
	return "127.0.0.1:" + strconv.Itoa(port), []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func caps(concurrent, perHour, perDay int32) ledger.Caps {
	return ledger.Caps{Concurrent: &concurrent, PerHour: &perHour, PerDay: &perDay}
}

// rules with every limit.
func rules() ledger.Rules {
	return ledger.Rules{
		Policy: ledger.Limits{Caps: caps(2, 3, 5), Cooldown: 5 * time.Minute, FailureThreshold: 2, OpenDuration: 30 * time.Minute},
		All:    caps(3, 6, 9),
	}
}

func request(n int, policy, target string) ledger.Request {
	return ledger.Request{
		Step:      ledger.Step{Namespace: "shop", PlanName: "plan", PlanUID: fmt.Sprint("plan-", n)},
		PolicyUID: policy, TargetUID: target,
	}
}

// full is a ledger in which two steps of policy p have not ended, so that the
// policy's third is refused.
func full(sequence int64) *ledger.Status {
	s := &ledger.Status{Sequence: sequence}
	for n := range 2 {
		r := request(n, "p", fmt.Sprint("t", n))
		s.Entries = append(s.Entries, v1alpha1.LedgerEntry{
			StepReference: r.Step, PolicyUID: r.PolicyUID, TargetUID: r.TargetUID, ReservationTime: metav1.NewTime(epoch),
		})
	}
	return s
}

// third is the step that a full ledger refuses.
func third() ledger.Request { return request(3, "p", "t3") }

func (s *stand) ask(tb testing.TB, sequence int64) redisguard.Answer {
	tb.Helper()
	return s.Ask(tb.Context(), name, uid, sequence, third(), rules(), epoch)
}

func (s *stand) consult(tb testing.TB, sequence int64) redisguard.Answer {
	tb.Helper()
	return s.Consult(tb.Context(), name, uid, full(sequence), third(), rules(), epoch)
}

func (s *stand) put(tb testing.TB, sequence int64) {
	tb.Helper()
	must(tb, s.Put(tb.Context(), name, uid, full(sequence)))
}

func refuses(tb testing.TB, when string, a redisguard.Answer) {
	tb.Helper()
	if !a.Vetoed() || a.Refused.Name != ledger.GateConcurrent {
		tb.Errorf("%s the full ledger's copy says %+v", when, a)
	}
}

func isUnknown(tb testing.TB, when string, a redisguard.Answer, why redisguard.Reason) {
	tb.Helper()
	if a.Verdict != redisguard.Unknown || a.Reason != why {
		tb.Errorf("%s it says %+v, want %s", when, a, why)
	}
}
