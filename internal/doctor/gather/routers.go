// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/internal/routeowner"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// maxRoutes bounds the routes that are read one by one.
const maxRoutes = 200

// readRouters reads TrafficRouters, the releases that name these, and the owners of their routes.
func (r *reader) readRouters(ctx context.Context) {
	out := &r.snapshot.Routers
	out.All = r.listRouters(ctx)
	var releases []doctor.RoutedRelease
	var routes []gitops.RouteName
	list := &v1alpha1.ABReleaseList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			release := &list.Items[i]
			if names := routersOf(release); len(names) > 0 {
				releases = append(releases, doctor.RoutedRelease{Namespace: release.Namespace, Name: release.Name, Routers: names})
			}
			routes = append(routes, routeowner.RoutesOf(release)...)
		}
	})
	const right = "list abreleases.plumbline.dev"
	out.Releases = result(releases, right, err)
	if err != nil {
		out.Owned = result([]gitops.Ownership(nil), right, err)
		return
	}
	out.Owned = r.readOwners(ctx, routes)
}

func (r *reader) listRouters(ctx context.Context) doctor.Read[[]doctor.Router] {
	var routers []doctor.Router
	list := &v1alpha1.TrafficRouterList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			routers = append(routers, routerOf(&list.Items[i]))
		}
	})
	return result(routers, "list trafficrouters.plumbline.dev", err)
}

func routerOf(in *v1alpha1.TrafficRouter) doctor.Router {
	out := doctor.Router{Name: in.Name, Type: string(in.Spec.Type)}
	if c := meta.FindStatusCondition(in.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.ObservedGeneration == in.Generation {
		out.Ready, out.Reason, out.Message = string(c.Status), c.Reason, c.Message
	}
	return out
}

// routersOf returns the names of the TrafficRouters of a release.
func routersOf(release *v1alpha1.ABRelease) (names []string) {
	for i := range release.Spec.Routers {
		if name := release.Spec.Routers[i].Name; name != v1alpha1.RouterMesh {
			names = append(names, name)
		}
	}
	return names
}

// readOwners reads the owners of routes. A route that does not exist has no owner.
func (r *reader) readOwners(ctx context.Context, routes []gitops.RouteName) doctor.Read[[]gitops.Ownership] {
	var out []gitops.Ownership
	for _, route := range routes[:min(len(routes), maxRoutes)] {
		ownership, owned, err := routeowner.FindOwnership(ctx, r.client, route)
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			right := "get " + strings.ToLower(route.Kind) + "s." + gitops.RouteGroup + " in namespace " + route.Namespace
			return result(out, right, err)
		case owned:
			out = append(out, ownership)
		}
	}
	return doctor.Got(out)
}
