// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

func TestConnect(t *testing.T) {
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	shop := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	edge := func(change func(*v1alpha1.TrafficRouterSpec)) *v1alpha1.TrafficRouter {
		router := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "r-1", Generation: 1}, Spec: v1alpha1.TrafficRouterSpec{
			Type: v1alpha1.TrafficRouterWebhook, AllowedNamespaces: shop, Webhook: &v1alpha1.WebhookRouter{URL: "https://edge"},
		}}
		change(&router.Spec)
		return router
	}
	for name, tc := range map[string]struct {
		router  *v1alpha1.TrafficRouter
		refused string
	}{
		"a namespace that is selected": {edge(func(*v1alpha1.TrafficRouterSpec) {}), ""},
		"all namespaces":               {edge(func(s *v1alpha1.TrafficRouterSpec) { s.AllowedNamespaces = &metav1.LabelSelector{} }), ""},
		"no namespace":                 {edge(func(s *v1alpha1.TrafficRouterSpec) { s.AllowedNamespaces = nil }), "TrafficRouter edge does not allow namespace shop"},
		"a namespace that is not selected": {edge(func(s *v1alpha1.TrafficRouterSpec) {
			s.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "pay"}}
		}), "does not allow namespace shop"},
		"a type of a later version": {edge(func(s *v1alpha1.TrafficRouterSpec) { s.Type = "Later" }), `type "Later", which this version does not know`},
		"no block":                  {edge(func(s *v1alpha1.TrafficRouterSpec) { s.Webhook = nil }), "without a block webhook"},
		"another name":              {&v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "far"}}, "TrafficRouter edge does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeclient.NewBuilder(kinds).WithObjects(tc.router, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}).Build()
			registry := &Registry{Context: t.Context(), Client: c, Now: time.Now}
			release := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "autumn", UID: "u-1"}}
			first, err := registry.Connect(t.Context(), release, "edge")
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same := func(what string, want bool) {
				t.Helper()
				if again, err := registry.Connect(t.Context(), release, "edge"); err != nil || (again == first) != want {
					t.Errorf("after %s the router is the same: %t, %v", what, again == first, err)
				}
			}
			same("another look", true)
			tc.router.Generation = 2
			if err := c.Update(t.Context(), tc.router); err != nil {
				t.Fatal(err)
			}
			same("a change of the TrafficRouter", false)
			first, _ = registry.Connect(t.Context(), release, "edge")
			release.UID = "u-2"
			same("another release of that name", false)
			registry.Forget(client.ObjectKeyFromObject(release))
			if len(registry.routes) != 0 {
				t.Errorf("kept are %v", registry.routes)
			}
		})
	}
}
