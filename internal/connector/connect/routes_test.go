// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// routed is a release with a route at TrafficRouter edge; an empty route is none.
func routed(name string, age time.Duration, kind v1alpha1.RouteKind, route string) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-age))}}
	router := v1alpha1.ReleaseRouter{Name: "edge"}
	if route != "" {
		router.GatewayAPI = &v1alpha1.ReleaseRoute{Kind: kind, Name: route}
		router.Services = []v1alpha1.VariationService{{Variation: "stable", ServiceName: "stable", Port: 80}, {Variation: "canary", ServiceName: "canary", Port: 80}}
	}
	r.Spec.Routers = []v1alpha1.ReleaseRouter{router}
	return r
}

func registryOf(t *testing.T, kind v1alpha1.TrafficRouterType, releases ...*v1alpha1.ABRelease) *Registry {
	t.Helper()
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	router := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "r-1", Generation: 1}, Spec: v1alpha1.TrafficRouterSpec{
		Type: kind, AllowedNamespaces: &metav1.LabelSelector{}, Webhook: &v1alpha1.WebhookRouter{URL: "https://edge"},
	}}
	objects := []client.Object{router, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	for _, r := range releases {
		objects = append(objects, r)
	}
	c := fakeclient.NewBuilder(kinds).WithObjects(objects...).Build()
	return &Registry{Context: t.Context(), Client: c, Routes: c, Now: func() time.Time { return noon }}
}

func TestAReleaseNamesARouteWhereTheTypeHasOne(t *testing.T) {
	for name, tc := range map[string]struct {
		kind    v1alpha1.TrafficRouterType
		route   string
		refused string
	}{
		"a route at Gateway API":     {v1alpha1.TrafficRouterGatewayAPI, "web", ""},
		"no route at Gateway API":    {v1alpha1.TrafficRouterGatewayAPI, "", "has type GatewayAPI: name the route in gatewayAPI"},
		"a route at a receiver":      {v1alpha1.TrafficRouterWebhook, "web", "has type Webhook, which has no route: leave gatewayAPI and services out"},
		"no route at a receiver":     {v1alpha1.TrafficRouterWebhook, "", ""},
		"a route at an unknown type": {"Later", "web", "has type Later, which has no route"},
	} {
		t.Run(name, func(t *testing.T) {
			release := routed("autumn", time.Hour, "", tc.route)
			_, err := registryOf(t, tc.kind, release).Connect(t.Context(), release, "edge")
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
}

func TestARouteBelongsToTheOldestRelease(t *testing.T) {
	all := []*v1alpha1.ABRelease{
		routed("first", 3*time.Hour, "", "web"), routed("second", 2*time.Hour, v1alpha1.RouteHTTP, "web"),
		routed("grpc", time.Hour, v1alpha1.RouteGRPC, "web"), routed("other", time.Hour, "", "pay"),
	}
	registry := registryOf(t, v1alpha1.TrafficRouterGatewayAPI, all...)
	for _, release := range all {
		_, err := registry.Connect(t.Context(), release, "edge")
		if want := release.Name == "second"; want != (err != nil) || want && !strings.Contains(err.Error(), "HTTPRoute shop/web belongs to release shop/first") {
			t.Errorf("release %s gets %v", release.Name, err)
		}
	}
}

func TestTheNextLeaderGoesOnFromTheStoredState(t *testing.T) {
	release := routed("autumn", time.Hour, "", "web")
	restored := metav1.NewTime(noon.Add(-time.Minute))
	want := []v1alpha1.ReleaseRouterStatus{{Name: "edge", Sequence: 7, Stable: "stable", Restores: []v1alpha1.RouterRestore{{RestoreTime: restored}}, LastEditor: "argocd-controller"}}
	release.Status.Routers = want
	registry := registryOf(t, v1alpha1.TrafficRouterGatewayAPI, release)
	router, err := registry.Connect(t.Context(), release, "edge")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, registry.States(client.ObjectKeyFromObject(release))); d != "" {
		t.Errorf("the state (-want +got):\n%s", d)
	}
	release.Status.Routers = nil // a cache that is behind
	of := &v1alpha1.TrafficRouter{}
	if err := registry.Client.Get(t.Context(), types.NamespacedName{Name: "edge"}, of); err != nil {
		t.Fatal(err)
	}
	of.Generation = 2
	if err := registry.Routes.Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	next, err := registry.Connect(t.Context(), release, "edge")
	if err != nil || next == router {
		t.Fatalf("another TrafficRouter has the same router, %v", err)
	}
	if d := cmp.Diff(want, registry.States(client.ObjectKeyFromObject(release))); d != "" {
		t.Errorf("the state after a change of the TrafficRouter (-want +got):\n%s", d)
	}
	release.UID = "another"
	if _, err := registry.Connect(t.Context(), release, "edge"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]v1alpha1.ReleaseRouterStatus{{Name: "edge"}}, registry.States(client.ObjectKeyFromObject(release))); d != "" {
		t.Errorf("the state of another release of that name (-want +got):\n%s", d)
	}
}

func TestTheStateOfARouterComesBackFromTheStatus(t *testing.T) {
	release := &v1alpha1.ABRelease{}
	want := gatewayapi.State{Sequence: 4, Active: "stable", Editor: "flux", Restored: []time.Time{noon}}
	release.Status.Routers = []v1alpha1.ReleaseRouterStatus{statusOf("far", gatewayapi.State{Sequence: 9}), statusOf("edge", want)}
	if d := cmp.Diff(want, stateOf(release, "edge")); d != "" {
		t.Errorf("the state (-want +got):\n%s", d)
	}
	if d := cmp.Diff(gatewayapi.State{}, stateOf(release, "none")); d != "" {
		t.Errorf("the state of a router without an entry (-want +got):\n%s", d)
	}
}
