// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// storedRoute is a route with a parent that has accepted each generation.
func storedRoute(parents ...any) *unstructured.Unstructured {
	backend := func(name string) any { return map[string]any{"name": name, "port": int64(80), "weight": int64(1)} }
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"parentRefs": parents, "rules": []any{map[string]any{"backendRefs": []any{backend("stable"), backend("canary")}}},
	}}}
	object.SetGroupVersionKind(HTTPRoute)
	object.SetNamespace("shop")
	object.SetName("web")
	return object
}

// routerOf has an API server that fails as a test says.
func routerOf(failure *error, objects ...client.Object) *Router {
	c := fakeclient.NewBuilder(fakeclient.KindsOf()()).WithObjects(objects...).Build()
	return New(Config{
		Client: interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if *failure != nil {
					return *failure
				}
				return c.Get(ctx, key, object, options...)
			},
		}),
		Kind: HTTPRoute, Route: types.NamespacedName{Namespace: "shop", Name: "web"}, Targets: targets, Manager: ours, Now: func() time.Time { return began },
	})
}

func TestASplitThatWasNotWrittenIsToldWithItsReason(t *testing.T) {
	resource := schema.GroupResource{Group: group, Resource: "httproutes"}
	for name, tc := range map[string]struct {
		failure error
		want    traffic.Knowledge
		why     string
	}{
		"the API server is away":         {errors.New("connection refused"), traffic.Unknown, "reading HTTPRoute shop/web: connection refused"},
		"the route is not there":         {apierrors.NewNotFound(resource, "web"), traffic.NoProxies, "RouteNotFound: HTTPRoute shop/web is not there"},
		"the rights do not reach":        {apierrors.NewForbidden(resource, "web", errors.New("no role")), traffic.Unknown, "NotPermitted: the discovery server may not read HTTPRoute shop/web"},
		"the kinds are not in a cluster": {errors.New(`no matches for kind "HTTPRoute"`), traffic.Unknown, `no matches for kind "HTTPRoute"`},
	} {
		t.Run(name, func(t *testing.T) {
			var failure error
			router := routerOf(&failure, storedRoute(map[string]any{"name": "edge"}))
			if err := router.Apply(t.Context(), perRequest(1, 1_000)); err != nil {
				t.Fatal(err)
			}
			failure = tc.failure
			demand := func(when string) {
				t.Helper()
				seen, err := router.Observe(t.Context())
				if err != nil || seen.Knowledge != tc.want || seen.IsEffective(1, began.Add(time.Hour)) || !strings.Contains(fmt.Sprint(seen.OutOfSync), tc.why) {
					t.Errorf("%s the observation is %+v, %v; want %s and %q", when, seen, err, tc.want, tc.why)
				}
			}
			demand("after the first split")
			if err := router.Apply(t.Context(), perRequest(2, 0)); err == nil {
				t.Error("a split is written without an API server")
			}
			demand("after the rollback")
			if got := router.State().Sequence; got != 1 {
				t.Errorf("the state has sequence %d, want 1", got)
			}
		})
	}
}

func TestARouteWithoutParentsIsCarriedOutByNoGateway(t *testing.T) {
	var failure error
	router := routerOf(&failure, storedRoute())
	if err := router.Apply(t.Context(), perRequest(1, 1_000)); err != nil {
		t.Fatal(err)
	}
	if seen, err := router.Observe(t.Context()); err != nil || seen.Knowledge != traffic.NoProxies || !strings.Contains(fmt.Sprint(seen.OutOfSync), "the route has no parent") {
		t.Errorf("the observation is %+v, %v", seen, err)
	}
}
