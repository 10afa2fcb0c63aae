// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"os"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	redisserver "github.com/plumbline-dev/plumbline/test/harness/server"
)

// startRedis runs a redis-server until the test ends.
func startRedis(t *testing.T) *redisserver.Redis {
	t.Helper()
	directory, err := os.MkdirTemp("", "plex") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	redis, err := redisserver.StartRedis(t.Context(), directory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	return redis
}

// With a copy of the ledgers in a real Redis the executor does what it does without:
// the copy refuses what the ledger would refuse, it is made again when it is lost, and
// when Redis is gone the ledger alone decides.
func TestACopyInRedisMayRefuseAndNothingElse(t *testing.T) {
	rotation.Share(t, 3)
	startAssessor(t)
	w, redis, registry := newWorld(t), startRedis(t), prometheus.NewRegistry()
	w.Rollouts()
	w.UnderGuard()
	w.crowd(8) // three of eleven are no mass drift
	w.Drifted("web", "api", "db")
	metrics, err := redisguard.NewMetrics(registry)
	w.Must(err)
	asked := redis.Client()
	t.Cleanup(func() { _ = asked.Close() })
	records := newEvidence(t)
	startExecutor(t, records, func(s *executor.Setup) {
		s.Registry, s.Mirror = registry, redisguard.New(asked, redisguard.Config{
			Prefix: "plumbline", Metrics: metrics, Budget: patience, // a busy machine is no slow Redis
		})
	})
	policy := w.policy(func(s *v1alpha1.RemediationPolicySpec) { s.Safety.MaxPerHour = 2 })

	first := w.Ended(w.plan(policy, "web"))
	if n := asked.Exists(t.Context(), w.copyKey()).Val(); n != 1 || first.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("there are %d copies, and the plan is %s", n, remediation.Describe(first))
	}
	w.Must(asked.FlushAll(t.Context()).Err())
	second := w.Ended(w.plan(policy, "api"))
	if n := asked.Exists(t.Context(), w.copyKey()).Val(); n != 1 || second.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("after a flush there are %d copies, and the plan is %s", n, remediation.Describe(second))
	}
	third := w.plan(policy, "db")
	w.waitsFor(third, "MaxPerHour", w.environment)
	w.Eventually("the copy has refused", func() error {
		if n := figure(t, registry, "plumbline_remediation_mirror_answers_total", "verdict=Refused"); n < 1 {
			return fmt.Errorf("it did %g times", n)
		}
		return nil
	})
	redis.Kill()
	w.wake(third)
	w.Eventually("Redis is missed", func() error {
		if n := figure(t, registry, "plumbline_remediation_mirror_answers_total", "verdict=Unknown", "reason=Unreachable"); n < 1 {
			return fmt.Errorf("it was %g times", n)
		}
		return nil
	})
	w.waitsFor(third, "MaxPerHour", w.environment)
	w.settled(2)
	w.proven(records, first, second)
}

// copyKey is where the copy of the Environment's ledger is.
func (w *world) copyKey() string {
	w.t.Helper()
	l := &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.t.Context(), client.ObjectKey{Namespace: "plumbline-system", Name: w.environment}, l))
	return fmt.Sprintf("plumbline:mirror:{%s/%s}", l.Name, l.UID)
}
