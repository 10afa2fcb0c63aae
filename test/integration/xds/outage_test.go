// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/relay"
)

// TestAFailureIsRolledBackWhileTheAPIServerIsAway has two replicas with a proxy each. The API server goes
// while a stage is measured, and the lease of the leader ends. The canary fails only then: no status can say
// so, and both proxies send all requests to the stable variation. When the API server is back, the status
// says what happened, with the sequence that proxies have.
func TestAFailureIsRolledBackWhileTheAPIServerIsAway(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	c := deliveryCluster(t)
	seats := c.shop(t, nil).seats("xds-a", "xds-b")
	for _, s := range seats {
		s.args = append(s.args, "--rollouts")
		s.start()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s said:\n%s", s.name, s.process.Said())
			}
			s.end(false)
		})
	}
	for _, s := range seats {
		s.process.awaitReady(t)
	}
	s, r, stable, canary, first := c.rolloutWorld(t, seats[0].reached())
	other := s.sidecar(seats[1].reached(), "front-1", s.copied().Data["ca.crt"], []string{"web"})
	backend.Answers(t, patience, other.front["web"], "200 stable")
	second := startCrowd(t, other.front["web"])

	s.must(s.ask(s.as("ann"), r, `{"verb":"Start","run":1,"requestedBy":"ann"}`))
	s.wait(r, patience, "proxies have the first stage, whose rollback is prepared", func(r *v1alpha1.ABRelease) bool {
		is, _ := holds(r, v1alpha1.ConditionAcknowledged)
		return is && r.Status.Split == "stable 80 / canary 20" && r.Status.Effective.PreparedSequence > r.Status.Effective.Sequence
	})
	prepared := r.Status.Effective.PreparedSequence
	s.wait(r, patience, "requests of the first stage are counted", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Rollout.Stage == 1 && r.Status.Rollout.Run.Stages[0].StartTime != nil
	})

	s.must(apiserver.Kill(c.server))
	poll.Until(t, patience, "the lease of the leader has ended, and it keeps vigil", func() error {
		for _, s := range seats {
			if strings.Contains(s.process.Said(), "the API server is away: runs are judged on") {
				return nil
			}
		}
		return fmt.Errorf("no replica says so")
	})
	if n := first.failed.Load() + second.failed.Load(); n > 0 {
		t.Fatalf("%d requests failed before the canary did", n)
	}
	canary.fails.Store(30)
	failing := time.Now()
	for name, crowd := range map[string]*crowd{"the first proxy": first, "the other proxy": second} {
		poll.Until(t, patience, name+" sends no request to the canary any more", func() error {
			canaries, answered := crowd.canaries.Load(), stable.asked.Load()
			poll.Until(t, patience, "the stable variation answers", func() error {
				if n := stable.asked.Load() - answered; n < 300 {
					return fmt.Errorf("%d requests", n)
				}
				return nil
			})
			if n := crowd.canaries.Load() - canaries; n > 0 {
				return fmt.Errorf("the canary answered %d of its requests", n)
			}
			return nil
		})
	}
	t.Logf("the last request was sent to the canary within %s of its first failure, with the API server away", time.Since(failing).Round(100*time.Millisecond))
	failed := first.failed.Load() + second.failed.Load()

	s.must(apiserver.Revive(c.server))
	s.wait(r, long, "the status says that the run is rolled back, and proxies have that", func(r *v1alpha1.ABRelease) bool {
		is, _ := holds(r, v1alpha1.ConditionAcknowledged)
		return is && r.Status.Rollout.Run.State == "RolledBack" && r.Status.Split == "stable 100 / canary 0"
	})
	if run := r.Status.Rollout.Run; run.Reason != "StageFailed" || len(r.Status.Rollout.Rejected) != 1 {
		t.Errorf("the run ended because %s: %s; rejected are %+v", run.Reason, run.Message, r.Status.Rollout.Rejected)
	}
	if got := r.Status.Effective; got.Sequence != prepared || got.PreparedSequence != 0 {
		t.Errorf("in force is sequence %d, and prepared %d: want %d, and none", got.Sequence, got.PreparedSequence, prepared)
	}
	if n := first.failed.Load() + second.failed.Load() - failed; n > 0 {
		t.Errorf("%d requests failed after the rollback", n)
	}
}

// reached is the replica of a seat as a proxy reaches it, whose bootstrap names the first address of loopback.
func (s *seat) reached() *replica {
	return &replica{s.process.Process, relay.Start(s.shop.T, s.address).Address}
}
