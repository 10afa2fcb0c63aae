// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const ours = "plumbline-xds"

// writtenBy is a route whose rules have a manager.
func writtenBy(managers ...string) *Route {
	route := routeOf(twoBackends(""))
	route.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "gateway-controller", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:rules":{}}}`)},
		{Manager: "labeler", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)},
		{Manager: "broken", FieldsV1: metav1.NewFieldsV1(`{"f:spec":3}`)}, {Manager: "empty"},
	}
	for _, m := range managers {
		route.ManagedFields = append(route.ManagedFields, metav1.ManagedFieldsEntry{Manager: m, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:rules":{}}}`)})
	}
	return route
}

func TestWhoChangedTheRules(t *testing.T) {
	for want, managers := range map[string][]string{
		"": {ours}, "argocd-controller": {"argocd-controller"}, "kubectl-edit, flux": {"kubectl-edit", "flux"}, "unknown": nil,
	} {
		if got := changedBy(writtenBy(managers...), ours); got != want {
			t.Errorf("rules of %v are changed by %q, want %q", managers, got, want)
		}
	}
	if got := changedBy(writtenBy("flux", ours), ours); got != "" {
		t.Errorf("rules that %s owns too are changed by %q", ours, got)
	}
}

// Each step is a write of one sequence at one time to a route of one manager.
func TestWeightsArePutBackThreeTimesInTenMinutes(t *testing.T) {
	state := State{Sequence: 4, Active: "stable"}
	for _, step := range []struct {
		after    time.Duration
		sequence uint64
		manager  string
		held     time.Duration // until when; 0 for a write
	}{
		{0, 4, ours, 0},
		{0, 4, "argocd", 0},
		{time.Minute, 4, "argocd", 0},
		{2 * time.Minute, 4, "argocd", 0},
		{3 * time.Minute, 4, "argocd", 10 * time.Minute},
		{3 * time.Minute, 5, "argocd", 0}, // a rollback does not wait
		{3 * time.Minute, 4, ours, 0},
		{9*time.Minute + 59*time.Second, 4, "argocd", 10 * time.Minute},
		{10 * time.Minute, 4, "argocd", 0},
		{10 * time.Minute, 4, "argocd", 11 * time.Minute},
	} {
		next, err := decide(writtenBy(step.manager), state, step.sequence, ours, began.Add(step.after))
		var held *HeldError
		switch {
		case step.held == 0 && err != nil:
			t.Errorf("after %s sequence %d by %s: %v", step.after, step.sequence, step.manager, err)
		case step.held != 0 && (!errors.As(err, &held) || held.Manager != "argocd" || !held.Until.Equal(began.Add(step.held))):
			t.Errorf("after %s: got %v, want held until %s after the begin", step.after, err, step.held)
		}
		state = next // as a leader that reads the stored state
		if len(state.Restored) > MaxRestores {
			t.Fatalf("the state has %d restores", len(state.Restored))
		}
	}
}

func TestOneReleaseHasARoute(t *testing.T) {
	claim := func(name string, age int, route string) Claim {
		return Claim{types.NamespacedName{Namespace: "shop", Name: name}, began.Add(time.Duration(-age) * time.Hour), "HTTPRoute", types.NamespacedName{Namespace: "shop", Name: route}}
	}
	all := []Claim{claim("b", 2, "web"), claim("a", 2, "web"), claim("young", 1, "web"), claim("oldest", 9, "pay")}
	grpc := claim("grpc", 10, "web")
	grpc.Kind = "GRPCRoute"
	all = append(all, grpc)
	for _, c := range all {
		want := map[string]string{"b": "a", "young": "a"}[c.Release.Name]
		if holder, taken := Holder(c, all); taken != (want != "") || taken && holder.Name != want {
			t.Errorf("the route of %s is held by %s (%t), want %q", c.Release, holder, taken, want)
		}
	}
}
