// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// routedObjects are two TrafficRouters, and releases with a route that Argo CD applies and one that is not there.
func routedObjects() []client.Object {
	edge := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge", Generation: 2}, Spec: v1alpha1.TrafficRouterSpec{Type: v1alpha1.TrafficRouterGatewayAPI}}
	edge.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Configured", Message: "m", ObservedGeneration: 2}}
	stale := edge.DeepCopy()
	stale.Name, stale.Generation = "stale", 3
	release := func(name, route string) *v1alpha1.ABRelease {
		return &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1alpha1.ABReleaseSpec{Routers: []v1alpha1.ReleaseRouter{
			{Name: v1alpha1.RouterMesh}, {Name: "edge", GatewayAPI: &v1alpha1.ReleaseRoute{Kind: v1alpha1.RouteHTTP, Name: route}},
		}}}
	}
	plain := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plain"}}
	route := &unstructured.Unstructured{Object: map[string]any{}}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: gitops.RouteGroup, Version: "v1", Kind: "HTTPRoute"})
	route.SetNamespace("shop")
	route.SetName("web")
	route.SetLabels(map[string]string{gitops.ArgoCDInstance: "shop"})
	return []client.Object{edge, stale, release("autumn", "web"), release("winter", "gone"), plain, route}
}

func readerOf(t *testing.T, hooks interceptor.Funcs) *reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &reader{client: fakeclient.NewBuilder(scheme).WithObjects(routedObjects()...).WithInterceptorFuncs(hooks).Build(), snapshot: &doctor.Snapshot{}}
}

func TestRouters_AreReadWithTheOwnersOfTheirRoutes(t *testing.T) {
	r := readerOf(t, interceptor.Funcs{})
	r.readRouters(t.Context())
	got := r.snapshot.Routers
	if len(got.Owned.Value) != 1 || got.Owned.Value[0].Owner.Name != "shop" || got.Owned.Value[0].Unread == "" {
		t.Errorf("owned are %+v", got.Owned)
	}
	got.Owned = doctor.Read[[]gitops.Ownership]{}
	want := doctor.Routers{
		All: doctor.Got([]doctor.Router{{Name: "edge", Type: "GatewayAPI", Ready: "True", Reason: "Configured", Message: "m"}, {Name: "stale", Type: "GatewayAPI"}}),
		Releases: doctor.Got([]doctor.RoutedRelease{
			{Namespace: "shop", Name: "autumn", Routers: []string{"edge"}}, {Namespace: "shop", Name: "winter", Routers: []string{"edge"}},
		}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRouters_ThatMayNotBeReadAreUnknown(t *testing.T) {
	refuse := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	}
	r := readerOf(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, routers := list.(*v1alpha1.TrafficRouterList); routers {
				return refuse("trafficrouters")
			}
			return c.List(ctx, list, options...)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refuse("httproutes")
		},
	})
	r.readRouters(t.Context())
	got := r.snapshot.Routers
	if got.All.Right != "list trafficrouters.plumbline.dev" || got.Owned.Right != "get httproutes.gateway.networking.k8s.io in namespace shop" || got.Releases.State != doctor.ReadValue {
		t.Errorf("read is %+v", got)
	}
}
