// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// asks is the ReleaseWork that the discovery server creates for a number.
func (s *shop) asks(r *v1alpha1.ABRelease, number int, verb v1alpha1.ReleaseWorkVerb) *v1alpha1.ReleaseWork {
	s.Helper()
	work := &v1alpha1.ReleaseWork{ObjectMeta: s.named(fmt.Sprintf("web-1-%d", number))}
	poll.Until(s.T, patience, fmt.Sprintf("work %d is asked for", number), func() error {
		asked := s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(work), work)
		// The status is written before the work, so it is read after the work.
		if err := s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if asked != nil {
			return fmt.Errorf("the status is %+v: %w", r.Status.Rollout, asked)
		}
		return nil
	})
	if in := r.Status.Rollout.Works; work.Spec.Verb != verb || len(in) != number || in[number-1].Verb != verb {
		s.Fatalf("work %d is %+v, and the status has %+v", number, work.Spec, in)
	}
	return work
}

// executor is a client with the account of the executor, which may write the status of works.
func (s *shop) executor() client.Client {
	s.Helper()
	const account = "plumbline-executor"
	user := "system:serviceaccount:" + rendered.Namespace + ":" + account
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
	s.create(&rbacv1.Role{ObjectMeta: s.named(account), Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"releaseworks/status"}, Verbs: []string{"update"},
	}}})
	s.create(&rbacv1.RoleBinding{ObjectMeta: s.named(account), RoleRef: ref, Subjects: []rbacv1.Subject{subject}})
	s.must(apiserver.AwaitBound(s.Context(), s.c.admin, subject, s.name, ref))
	as, err := client.New(apiserver.Impersonate(s.c.server.Config, user), client.Options{Scheme: s.c.admin.Scheme()})
	s.must(err)
	return as
}

// done answers a work in the place of the executor.
func (s *shop) done(executor client.Client, work *v1alpha1.ReleaseWork) {
	s.Helper()
	work.Status.Phase = v1alpha1.WorkSucceeded
	s.must(executor.Status().Update(s.Context(), work))
}

// body reads a Deployment as the executor does.
func (s *shop) body(name string) *unstructured.Unstructured {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	s.must(s.c.admin.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: name}, u))
	return u
}

// rolls has the pods of a Deployment follow its template, as its controller would.
func (s *shop) rolls(name, label string, a *application) {
	s.Helper()
	d := &appsv1.Deployment{ObjectMeta: s.named(name)}
	s.must(s.c.admin.Get(s.Context(), client.ObjectKeyFromObject(d), d))
	s.roll(d, label, a)
}

// TestARolloutByACloneChangesTheBaseline plays the executor and the controller of Deployments. The objects are
// those of package clone, so the discovery server has to know them again as the API server stores them.
func TestARolloutByACloneChangesTheBaseline(t *testing.T) {
	t.Parallel() // it has a cluster of its own
	c, server := delivery(t)
	s := c.shop(t, enabled)
	service := s.selecting("web")
	stable, canary := startApplication(t, "stable"), startApplication(t, "canary")
	s.deployment("stable", "shop:1", stable)
	s.addressed("web", stable.address)
	r := &v1alpha1.ABRelease{ObjectMeta: s.named("web")}
	s.must(yaml.UnmarshalStrict([]byte(`
serviceName: web
stable: stable
variations:
- {name: stable, workload: {kind: Deployment, name: web-stable}}
- {name: canary, clone: {image: "shop:2", podLabels: {app: web-canary}}}
trafficSplit: {type: Sticky, sticky: {header: visitor}, percentages: {stable: 100, canary: 0}}
rollout:
  analysis: {cohortCheck: 10s}
  promotion: UpdateBaseline
  requestedBy: ann
  strategy:
    healthCheckInterval: 10s
    stages:
    - {trafficPercentage: 20, duration: 10s, healthThreshold: 90}
    - {trafficPercentage: 100, duration: 0s}
`), &r.Spec))
	s.awaitCopy()
	s.must(s.as("ann", "create").Create(t.Context(), r))
	proxy := s.sidecar(server, "front-0", s.copied().Data["ca.crt"], []string{"web"})
	backend.Answers(t, patience, proxy.front["web"], "200 stable")
	clients, executor := startCrowd(t, proxy.front["web"]), s.executor()

	create := s.asks(r, 1, v1alpha1.WorkCreateClone)
	body, err := clone.BodyOf(r, "canary", s.body("web-stable"), service.Spec.Selector, *create.Spec.Replicas)
	s.must(err)
	if hash, err := clone.TemplateHash(s.body("web-stable")); err != nil || hash != create.Spec.ExpectedHash {
		t.Errorf("the template has %s, and %s is expected: %v", hash, create.Spec.ExpectedHash, err)
	}
	s.create(body)
	s.rolls("web-canary", "1", canary)
	s.done(executor, create)
	scale := s.asks(r, 2, v1alpha1.WorkScale) // the stage of 20 % has passed
	if canary.asked.Load() == 0 || *scale.Spec.Replicas != 2 {
		t.Errorf("the clone was asked %d times, and is to have %d pods", canary.asked.Load(), *scale.Spec.Replicas)
	}
	s.done(executor, scale)
	update := s.asks(r, 3, v1alpha1.WorkUpdateBaseline)
	if clients.movedBack.Load() > 0 || r.Status.Split != "stable 0 / canary 100" {
		t.Errorf("%d visitors were moved back, and in force is %q", clients.movedBack.Load(), r.Status.Split)
	}
	changed, err := clone.Change(r, "canary", s.body("web-stable"))
	s.must(err)
	s.must(c.admin.Update(t.Context(), changed))
	s.done(executor, update)
	s.waits(r, "BaselineRollout")
	s.rolls("web-stable", "2", stable)
	zero := s.asks(r, 4, v1alpha1.WorkScale)
	if *zero.Spec.Replicas != 0 || r.Status.Split != "stable 100 / canary 0" || r.Status.Rollout.Run.State != "Completed" || r.Status.ActiveVariation != "stable" {
		t.Errorf("work 4 is %+v, and in force is %q of run %+v", zero.Spec, r.Status.Split, r.Status.Rollout.Run)
	}
	answered := canary.asked.Load()
	s.done(executor, zero)
	s.wait(r, patience, "the run waits for nothing", func(r *v1alpha1.ABRelease) bool { return r.Status.Rollout.Waiting == nil })
	if n := clients.failed.Load(); n > 0 || canary.asked.Load() > answered+1 || r.Status.Rollout.Run.Number != 1 {
		t.Errorf("%d requests failed, and the clone was asked %d times after its end: %+v", n, canary.asked.Load()-answered, r.Status.Rollout.Run)
	}
	s.refusesWrites(zero)
}

// refusesWrites demands that the discovery server can neither change a work nor write a workload.
func (s *shop) refusesWrites(work *v1alpha1.ReleaseWork) {
	s.Helper()
	server, err := client.New(apiserver.Impersonate(s.c.server.Config, "system:serviceaccount:plumbline-system:plumbline-xds"), client.Options{Scheme: s.c.admin.Scheme()})
	s.must(err)
	d := &appsv1.Deployment{ObjectMeta: s.named("web-stable")}
	for what, err := range map[string]error{
		"the status of a work": server.Status().Update(s.Context(), work.DeepCopy()), "a work": server.Delete(s.Context(), work.DeepCopy()),
		"a workload": server.Update(s.Context(), d), "a pod": server.Delete(s.Context(), &corev1.Pod{ObjectMeta: s.named("web-stable-2")}),
	} {
		if !apierrors.IsForbidden(err) {
			s.Errorf("the discovery server writes %s: %v", what, err)
		}
	}
}
