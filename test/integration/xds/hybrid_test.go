// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// answered waits until an application has answered so many more requests.
func (s *shop) answered(a *application, more int64) {
	s.Helper()
	before := a.asked.Load()
	poll.Until(s.T, patience, "visitors are answered", func() error {
		if n := a.asked.Load() - before; n < more {
			return fmt.Errorf("%d requests are answered, want %d", n, more)
		}
		return nil
	})
}

// TestRequestsThatFailSendTheWorkersBack has the discovery server run with the rights of the chart. The requests go
// over once the worker of the canary is ready. They go back by the judge before the executor does anything.
func TestRequestsThatFailSendTheWorkersBack(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	c, server := delivery(t)
	s := c.shop(t, enabled)
	s.selecting("web")
	stable, canary := startApplication(t, "stable"), startApplication(t, "canary")
	canary.fails.Store(60)
	s.deployment("stable", "shop:1", stable)
	s.deployment("canary", "shop:2", canary)
	s.addressed("web", stable.address)
	s.workers("worker", 4)
	s.workers("worker-next", 0)
	r := &v1alpha1.ABRelease{ObjectMeta: s.named("web")}
	s.must(yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations:
- {name: stable, workload: {kind: Deployment, name: web-stable}, group: {kind: Deployment, name: worker}}
- {name: canary, workload: {kind: Deployment, name: web-canary}, group: {kind: Deployment, name: worker-next}}
trafficSplit: {type: Sticky, sticky: {header: visitor}, percentages: {stable: 100, canary: 0}}
rollout:
  model: Hybrid
  requestedBy: ann
  analysis: {cohortCheck: 0s}
  strategy:
    healthCheckInterval: 10s
    stages:
    - {trafficPercentage: 25, duration: 10m, healthThreshold: 90}
    - {trafficPercentage: 100, duration: 0s}
`), &r.Spec))
	s.awaitCopy()
	s.must(s.as("ann", "create").Create(t.Context(), r))
	proxy := s.sidecar(server, "front-0", s.copied().Data["ca.crt"], []string{"web"})
	backend.Answers(t, patience, proxy.front["web"], "200 stable")
	clients, executor := startCrowd(t, proxy.front["web"]), s.executor()
	work := s.asks(r, 1, v1alpha1.WorkScale)
	if got := fmt.Sprint(work.Spec.Variation, " ", *work.Spec.Replicas, " ", r.Status.Split, " ", clients.canaries.Load()); got != "canary 1 stable 100 / canary 0 0" {
		t.Errorf("before the worker is there it is %q", got)
	}
	s.scales(r, executor, 1, "canary", 1)
	s.scales(r, executor, 2, "stable", 3)
	if groups := r.Status.Rollout.Groups; len(groups) != 2 || r.Status.Split != "stable 75 / canary 25" || r.Status.Rollout.Run.Division.Model != v1alpha1.RolloutModelHybrid {
		t.Errorf("the status is %+v", r.Status)
	}
	s.wait(r, patience, "the run is rolled back", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Run.State == "RolledBack" })
	if run := r.Status.Rollout.Run; run.Reason != "StageFailed" || r.Status.Split != "stable 100 / canary 0" || run.Division.SettlementTime != nil {
		t.Errorf("in force is %q: %+v", r.Status.Split, run)
	}
	if clients.canaries.Load() == 0 {
		t.Error("no request reached the canary")
	}
	asked := s.asks(r, 3, v1alpha1.WorkScale)
	s.wait(r, patience, "proxies have acknowledged the rollback", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Waiting.Reason == "WorkPending" })
	s.answered(stable, 1) // the visitor of before the rollback has the answer
	before := clients.canaries.Load()
	s.answered(stable, 50)
	if asked.Status.Phase != "" || clients.canaries.Load() != before {
		t.Errorf("the work is %s, and %d requests went to the canary after the rollback", asked.Status.Phase, clients.canaries.Load()-before)
	}
	s.scales(r, executor, 3, "stable", 4)
	s.scales(r, executor, 4, "canary", 0)
	s.wait(r, patience, "the groups have their replicas back", func(r *v1alpha1.ABRelease) bool {
		return r.Status.Rollout.Run.Division.SettlementTime != nil && len(r.Finalizers) == 0
	})
}
