// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	connector "github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cleanUp deletes objects at the end of a test.
func cleanUp(t *testing.T, objects ...client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		for _, object := range objects {
			must(t, client.IgnoreNotFound(admin.Delete(ctx, object)))
		}
	})
}

// plainRoute has one rule with the Service stable and another one.
func plainRoute(name, other string) *unstructured.Unstructured {
	backend := func(service string) any {
		return map[string]any{"name": service, "port": int64(80), "weight": int64(1)}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"parentRefs": []any{map[string]any{"name": "edge"}},
		"rules":      []any{map[string]any{"name": "main", "backendRefs": []any{backend("stable"), backend(other)}}},
	}}}
	object.SetGroupVersionKind(connector.HTTPRoute)
	object.SetNamespace(tenant)
	object.SetName(name)
	return object
}

// implementation is a client whose writes the controller of a Gateway accepts at once, unless it is away.
type implementation struct {
	client.Client
	away bool
}

func (i *implementation) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := i.Client.Patch(ctx, object, patch, options...); err != nil || i.away {
		return err
	}
	return accept(ctx, object.(*unstructured.Unstructured))
}

// accept reports on the generation of a route as a Gateway does.
func accept(ctx context.Context, object *unstructured.Unstructured) error {
	condition := func(kind string) any {
		return map[string]any{"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": object.GetGeneration(), "lastTransitionTime": "2030-01-01T00:00:00Z"}
	}
	reported := object.DeepCopy()
	err := unstructured.SetNestedSlice(reported.Object, []any{map[string]any{
		"parentRef": map[string]any{"name": "edge"}, "controllerName": "example.com/gateway", "conditions": []any{condition("Accepted"), condition("ResolvedRefs")},
	}}, "status", "parents")
	if err != nil {
		return err
	}
	return admin.Status().Update(ctx, reported)
}

// stand has a route, its Gateway and its router, and a clock of its own.
type stand struct {
	*testing.T
	gateway *implementation
	config  connector.Config
	routers map[types.NamespacedName]*connector.Router
	now     time.Time
}

func newStand(t *testing.T, kind string) *stand {
	t.Helper()
	s := &stand{T: t, gateway: &implementation{Client: xds}, routers: map[types.NamespacedName]*connector.Router{}, now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	object := plainRoute("", "canary")
	object.SetKind(kind)
	object.SetGenerateName("web-")
	must(t, admin.Create(t.Context(), object))
	cleanUp(t, object)
	s.config = connector.Config{
		Client: s.gateway, Kind: object.GroupVersionKind(), Route: client.ObjectKeyFromObject(object), Rule: "main", Manager: "plumbline-xds",
		Targets: connector.Targets{"stable": {Service: "stable", Port: 80}, "canary": {Service: "canary", Port: 80}},
		Now:     func() time.Time { return s.now },
	}
	return s
}

// Router implements routertest.Stand.
func (s *stand) Router(release types.NamespacedName) traffic.Router {
	if s.routers[release] == nil {
		s.routers[release] = connector.New(s.config)
	}
	return s.routers[release]
}

// split gives the canary a share.
func split(sequence uint64, canary traffic.Weight) traffic.Split {
	s := routertest.Split(sequence, canary)
	s.Key = traffic.Key{}
	return s
}

func (s *stand) read() *unstructured.Unstructured {
	s.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.config.Kind)
	must(s, admin.Get(s.Context(), s.config.Route, object))
	return object
}

// weights demands the weights of the stable variation and of the canary.
func (s *stand) weights(want ...int64) {
	s.Helper()
	rules, _, err := unstructured.NestedSlice(s.read().Object, "spec", "rules")
	must(s, err)
	var got []int64
	for _, b := range rules[0].(map[string]any)["backendRefs"].([]any) {
		got = append(got, b.(map[string]any)["weight"].(int64))
	}
	if d := cmp.Diff(want, got); d != "" {
		s.Errorf("the weights (-want +got):\n%s", d)
	}
}

// knows demands what a router knows, and words of the reason why.
func (s *stand) knows(router traffic.Router, want traffic.Knowledge, why string) {
	s.Helper()
	seen, err := router.Observe(s.Context())
	must(s, err)
	if text := fmt.Sprint(seen.OutOfSync); seen.Knowledge != want || !strings.Contains(text, why) {
		s.Errorf("the knowledge is %s (%s), want %s and %q", seen.Knowledge, text, want, why)
	}
}

// reapply is a GitOps tool with the manifest of the user.
func (s *stand) reapply() {
	s.Helper()
	object := plainRoute(s.config.Route.Name, "canary")
	object.SetKind(s.config.Kind.Kind)
	must(s, admin.Apply(s.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("argocd-controller"), client.ForceOwnership))
}

func TestTheRouterKeepsTheContract(t *testing.T) {
	for _, kind := range []string{"HTTPRoute", "GRPCRoute"} {
		t.Run(kind, func(t *testing.T) {
			routertest.Conform(t, routertest.Maker{Capabilities: connectors.GatewayAPI.Capabilities, RoundRobin: true, Begin: func(t *testing.T) routertest.Stand { return newStand(t, kind) }})
		})
	}
}

func TestASplitCountsWhenTheGatewayHasAcceptedItsGeneration(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	s.config.Settle, s.gateway.away = time.Minute, true
	router := connector.New(s.config)
	must(t, router.Apply(t.Context(), split(1, 1_000)))
	s.weights(9_000, 1_000)
	s.knows(router, traffic.Unknown, "Gateway shop/edge")
	must(t, accept(t.Context(), s.read()))
	s.knows(router, traffic.Accepted, "")
	must(t, router.Apply(t.Context(), split(2, 0)))
	s.weights(10_000, 0)
	s.knows(router, traffic.Unknown, "and the route has generation 3")
	must(t, accept(t.Context(), s.read()))
	s.now = s.now.Add(time.Hour)
	for _, wait := range []time.Duration{0, time.Minute} {
		s.now = s.now.Add(wait)
		seen, err := router.Observe(t.Context())
		must(t, err)
		if seen.IsEffective(2, s.now) != (wait == time.Minute) {
			t.Errorf("%s after Accepted sequence 2 is effective: %t", wait, wait == 0)
		}
	}
}

func TestAGitOpsToolThatReappliesIsNamedAndThenLeftAlone(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	router := connector.New(s.config)
	must(t, router.Apply(t.Context(), split(4, 2_500)))
	for range connector.MaxRestores {
		s.now = s.now.Add(time.Second)
		s.reapply()
		s.knows(router, traffic.Contradicted, "argocd-controller")
		must(t, router.Apply(t.Context(), split(4, 2_500)))
		s.weights(7_500, 2_500)
	}
	s.reapply()
	for _, leader := range []string{"the leader", "the next leader"} {
		var held *connector.HeldError
		if err := router.Apply(t.Context(), split(4, 2_500)); !errors.As(err, &held) || held.Manager != "argocd-controller" {
			t.Errorf("%s: got %v, want the weights held", leader, err)
		}
		s.weights(1, 1)
		s.config.State = router.State()
		router = connector.New(s.config)
	}
	must(t, router.Apply(t.Context(), split(5, 0))) // a rollback does not wait
	s.weights(10_000, 0)
	s.reapply()
	s.now = s.now.Add(connector.RestoreWindow)
	must(t, router.Apply(t.Context(), split(5, 0)))
	s.weights(10_000, 0)
}

func TestTheNextLeaderTakesNoLowerSequence(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	router := connector.New(s.config)
	must(t, router.Apply(t.Context(), split(7, 1_000)))
	s.config.State = router.State()
	router = connector.New(s.config)
	var later *traffic.LaterError
	if err := router.Apply(t.Context(), split(6, 9_000)); !errors.As(err, &later) || later.Sequence != 7 {
		t.Errorf("got %v, want a LaterError of 7", err)
	}
	s.weights(9_000, 1_000)
}

func TestARemovalLeavesAllRequestsToTheStableVariation(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	router := connector.New(s.config)
	must(t, router.Apply(t.Context(), split(1, 7_000)))
	s.config.State = router.State()
	router, s.gateway.away = connector.New(s.config), true
	if err := router.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "Gateway shop/edge has not accepted it") {
		t.Errorf("a removal that no Gateway has accepted: %v", err)
	}
	s.weights(10_000, 0)
	must(t, accept(t.Context(), s.read()))
	must(t, router.Remove(t.Context()))
	if d := cmp.Diff(connector.State{}, router.State()); d != "" {
		t.Errorf("the state after a removal (-want +got):\n%s", d)
	}
}

func TestARouteThatGoesMidRunIsNamed(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	router := connector.New(s.config)
	must(t, router.Apply(t.Context(), split(1, 1_000)))
	must(t, admin.Delete(t.Context(), s.read()))
	s.knows(router, traffic.NoProxies, "RouteNotFound")
	var refusal *connector.RefusalError
	if err := router.Apply(t.Context(), split(2, 2_000)); !errors.As(err, &refusal) || refusal.Reason != connector.ReasonRouteNotFound {
		t.Errorf("got %v, want %s", err, connector.ReasonRouteNotFound)
	}
	must(t, router.Remove(t.Context()))
}

func TestBackendsThatChangeMidRunAreNamedAndLeftAlone(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	router := connector.New(s.config)
	must(t, router.Apply(t.Context(), split(1, 1_000)))
	changed := plainRoute(s.config.Route.Name, "next")
	changed.SetResourceVersion(s.read().GetResourceVersion())
	must(t, admin.Update(t.Context(), changed, client.FieldOwner("kubectl-edit")))
	s.knows(router, traffic.Unknown, "OtherBackendHasWeight")
	if err := router.Apply(t.Context(), split(2, 2_000)); err == nil {
		t.Error("weights are written to other backends")
	}
	s.weights(1, 1)
}

func TestAWriteLeavesNoMarkOnTheRoute(t *testing.T) {
	s := newStand(t, "HTTPRoute")
	before := s.read()
	must(t, connector.New(s.config).Apply(t.Context(), split(1, 1_000)))
	after := s.read()
	for _, object := range []*unstructured.Unstructured{before, after} {
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		object.SetGeneration(0)
		delete(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "spec", "rules")
	}
	if d := cmp.Diff(before.Object, after.Object); d != "" {
		t.Errorf("the route beside its rules (-before +after):\n%s", d)
	}
}
