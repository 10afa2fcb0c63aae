// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
)

// freshRelease is a release whose canary, a clone, is compared with a fresh control in its first stage.
const freshRelease = `
serviceName: web
stable: stable
variations:
- {name: stable, workload: {kind: Deployment, name: web-stable}}
- {name: canary, clone: {image: "shop:2", podLabels: {app: web-canary}}}
trafficSplit: {type: Sticky, sticky: {header: visitor}, percentages: {stable: 100, canary: 0}}
rollout:
  analysis: {cohortCheck: 0s, control: Fresh, controlPodLabels: {app: web-control}}
  promotion: AwaitBaseline
  requestedBy: ann
  strategy:
    healthCheckInterval: 10s
    stages:
    - {trafficPercentage: 20, duration: 10s, healthThreshold: 90}
    - {trafficPercentage: 60, duration: 10s, healthThreshold: 90}
    - {trafficPercentage: 100, duration: 0s}
`

// makes carries a CreateClone out in the place of the executor and of the controller of Deployments.
func (s *shop) makes(executor client.Client, r *v1alpha1.ABRelease, work *v1alpha1.ReleaseWork, a *application) *unstructured.Unstructured {
	s.Helper()
	variation := work.Spec.Variation
	body, err := clone.BodyOf(clone.WithControl(r, variation), variation, s.body("web-stable"), map[string]string{"app": "web"}, *work.Spec.Replicas)
	s.must(err)
	s.create(body)
	work.Status.TemplateHash, err = clone.TemplateHash(body)
	s.must(err)
	s.rolls(body.GetName(), string(variation), a)
	s.done(executor, work)
	return body
}

// TestACanaryIsComparedWithAFreshControl has a real proxy divide the requests of a crowd between three arms. Of the
// requests to the canary and to the control 4 % fail, and none of the others: beside the stable variation the canary
// would fail.
func TestACanaryIsComparedWithAFreshControl(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	c, server := delivery(t)
	s := c.shop(t, enabled)
	s.selecting("web")
	stable, canary, control := startApplication(t, "stable"), startApplication(t, "canary"), startApplication(t, "stable")
	s.deployment("stable", "shop:1", stable)
	s.addressed("web", stable.address)
	r := &v1alpha1.ABRelease{ObjectMeta: s.named("web")}
	s.must(yaml.UnmarshalStrict([]byte(freshRelease), &r.Spec))
	s.awaitCopy()
	s.must(s.as("ann", "create").Create(t.Context(), r))
	proxy := s.sidecar(server, "front-0", s.copied().Data["ca.crt"], []string{"web"})
	backend.Answers(t, patience, proxy.front["web"], "200 stable")
	clients, executor := startCrowd(t, proxy.front["web"]), s.executor()

	s.makes(executor, r, s.asks(r, 1, v1alpha1.WorkCreateClone), canary)
	create := s.asks(r, 2, v1alpha1.WorkCreateClone)
	if create.Spec.Variation != v1alpha1.FreshControl || *create.Spec.Replicas != 1 {
		t.Fatalf("work 2 is %+v", create.Spec)
	}
	s.makes(executor, r, create, control)
	canary.fails.Store(4)
	control.fails.Store(4)
	s.wait(r, patience, "three arms have requests", func(r *v1alpha1.ABRelease) bool {
		is, _ := holds(r, v1alpha1.ConditionAcknowledged)
		return is && r.Status.Split == "stable 60 / canary 20 / fresh-control 20"
	})
	s.wait(r, patience, "the stage of 60 % has begun", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Stage == 2 })
	canary.fails.Store(0)
	zero := s.asks(r, 3, v1alpha1.WorkScale) // above 33 % the stable variation is the control
	if zero.Spec.Variation != v1alpha1.FreshControl || *zero.Spec.Replicas != 0 || r.Status.Split != "stable 40 / canary 60" {
		t.Errorf("work 3 is %+v, and in force is %q", zero.Spec, r.Status.Split)
	}
	if a := r.Status.Rollout.Analysis; len(a.Stages) != 1 || a.Stages[0].Verdict != "Pass" || a.Stages[0].Variations[0].Variation != v1alpha1.FreshControl || a.Stages[0].Variations[0].Samples == 0 {
		t.Errorf("the canary was compared with %+v", a.Stages)
	}
	answered := control.asked.Load()
	s.done(executor, zero)
	s.wait(r, patience, "the control has no replicas", func(r *v1alpha1.ABRelease) bool {
		in := r.Status.Rollout.Run.FreshControl
		return in != nil && *in.Replicas == 0 && in.CompletionTime != nil
	})
	if n := control.asked.Load() - answered; n > 1 || answered == 0 { // one may have been on its way
		t.Errorf("the control was asked %d times, and %d times after it had left the split", answered, n)
	}
	if clients.movedBack.Load() > 0 {
		t.Errorf("%d visitors were moved back", clients.movedBack.Load())
	}
}
