// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// requests count what a process asks, as "get deployments", "list namespaces" or "watch
// deployments of web".
type requests struct {
	mu     sync.Mutex
	counts map[string]int
}

// of is a configuration whose requests are counted.
func (r *requests) of(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			r.note(request)
			return next.RoundTrip(request)
		})
	})
	return config
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func (r *requests) note(request *http.Request) {
	resource, query := resourceOf(request.URL), request.URL.Query()
	what := strings.ToLower(request.Method) + " " + resource
	switch name, selects := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); {
	case query.Get("watch") != "" && selects:
		what = "watch " + resource + " of " + name
	case query.Get("watch") != "":
		what = "watch " + resource
	case request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/"+resource):
		what = "list " + resource
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// clear forgets what was counted, and count is how often something was asked since.
func (r *requests) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts = map[string]int{}
}

func (r *requests) count(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[what]
}

// D24 of the review of remediation. The target changes twenty times before it is ready; the
// plan sees that without a list, and goes on when the target is ready.
func TestAPlanWatchesTheTargetThatItWaitsFor(t *testing.T) {
	startAssessor(t)
	w := newWorld(t)
	gate := &remediation.Gate{}
	w.RolloutsThrough(gate)
	w.UnderGuard()
	w.Drifted("web")
	gate.Shut()
	plan := w.plan(w.policy(selectsNothing), "web")
	asked := &requests{counts: map[string]int{}}
	startExecutor(t, newEvidence(t), func(s *executor.Setup) { s.Config = asked.of(s.Config) })
	w.UntilPlan(plan, "its target is written", func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) > 0 && p.Status.Steps[0].State == v1alpha1.StepApplied
	})
	w.Eventually("the target is watched", func() error {
		if n := asked.count("watch deployments of web"); n != 1 {
			return fmt.Errorf("%d watches of it were begun", n)
		}
		return nil
	})
	asked.clear()
	const changes = 20
	for i := range changes {
		d := w.Live("web")
		d.Status.UnavailableReplicas = int32(i + 1) //nolint:gosec // few
		w.Must(admin.Status().Update(w.Ctx(), d))
	}
	gate.Open()
	ended := w.Ended(plan)
	if ended.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan ended as %s", remediation.Describe(ended))
	}
	// A look before the end, and one for each change, are the most.
	if n := asked.count("get deployments"); n > changes+10 {
		t.Errorf("the target was read %d times", n)
	}
	for _, kind := range []string{"namespaces", "specguards", "clusterspecguards", "guarddefaults", "environments"} {
		if n := asked.count("list " + kind); n > 0 {
			t.Errorf("it made %d lists of %s while it waited", n, kind)
		}
	}
}

// An autoscaler scales a target whose pods roll, while the assessor is away. The plan waits for
// the assessor, which masks the replicas, and does not take the change for one of a stranger.
func TestAPlanWaitsUntilTheAssessorHasSeenAChangeOfItsTarget(t *testing.T) {
	assessor := startAssessor(t)
	w := newWorld(t)
	gate := &remediation.Gate{}
	w.RolloutsThrough(gate)
	w.UnderGuard(guarded.ExpectAutoscaler)
	w.Drifted("web")
	gate.Shut()
	plan := w.plan(w.policy(selectsNothing), "web")
	asked := &requests{counts: map[string]int{}}
	startExecutor(t, newEvidence(t), func(s *executor.Setup) { s.Config = asked.of(s.Config) })
	w.UntilPlan(plan, "its target is written", func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) > 0 && p.Status.Steps[0].State == v1alpha1.StepApplied
	})
	// Of two writes that no assessor has seen, the stamp names the writer of the second alone.
	w.Eventually("the assessor has seen the remediation", func() error {
		b, err := w.Baseline("web")
		if err == nil && b.Status.State != v1alpha1.StateInSync {
			err = fmt.Errorf("the Baseline is %s", b.Status.State)
		}
		return err
	})
	assessor.Halt(t)
	w.Patch("system:serviceaccount:kube-system:horizontal-pod-autoscaler", "web", `{"spec":{"replicas":7}}`)
	asked.clear()
	w.Eventually("the executor has looked at the change twice", func() error {
		if n := asked.count("get deployments"); n < 2 {
			return fmt.Errorf("the target was read %d times", n)
		}
		return nil
	})
	startAssessor(t)
	gate.Open()
	ended, live := w.Ended(plan), w.Live("web")
	if ended.Status.Phase != v1alpha1.PlanSucceeded || *live.Spec.Replicas != 7 || imageOf(live) != guarded.Image {
		t.Errorf("%s; %d replicas of %s", remediation.Describe(ended), *live.Spec.Replicas, imageOf(live))
	}
}

// Redis goes away while a plan waits for its target. The watch wakes the plan as before, and the
// ledgers alone let the next target follow.
func TestAPlanGoesOnWhenItsTargetIsReadyAndRedisIsAway(t *testing.T) {
	startAssessor(t)
	w, redis, registry := newWorld(t), startRedis(t), prometheus.NewRegistry()
	gate := &remediation.Gate{}
	w.RolloutsThrough(gate)
	w.UnderGuard()
	w.Drifted("web", "api")
	gate.Shut()
	metrics, err := redisguard.NewMetrics(registry)
	w.Must(err)
	client := redis.Client()
	t.Cleanup(func() { _ = client.Close() })
	asked := &requests{counts: map[string]int{}}
	plan := w.plan(w.policy(selectsNothing), "web", "api")
	startExecutor(t, newEvidence(t), func(s *executor.Setup) {
		s.Config, s.Registry = asked.of(s.Config), registry
		s.Mirror = redisguard.New(client, redisguard.Config{Prefix: "plumbline", Metrics: metrics, Budget: patience})
	})
	w.UntilPlan(plan, "its target is written", hasWritten)
	w.Eventually("the target is watched", func() error {
		if n := asked.count("watch deployments of web"); n != 1 {
			return fmt.Errorf("%d watches of it were begun", n)
		}
		return nil
	})
	redis.Kill()
	gate.Open()
	if ended := w.Ended(plan); ended.Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan ended as %s", remediation.Describe(ended))
	}
	if n := figure(t, registry, "plumbline_remediation_mirror_answers_total", "verdict=Unknown", "reason=Unreachable"); n < 1 {
		t.Errorf("Redis was missed %g times", n)
	}
}
