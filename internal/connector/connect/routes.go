// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const (
	// fieldManager is the name of the discovery server in the managed fields of routes.
	fieldManager = "plumbline-xds"
	// maxEditor bounds the name of another field manager in a status.
	maxEditor = 256
)

// checkTarget demands that a release names a route if the type of the TrafficRouter has one, and no route otherwise.
func checkTarget(of *v1alpha1.TrafficRouter, target *v1alpha1.ReleaseRouter) error {
	wants, has := of.Spec.Type == v1alpha1.TrafficRouterGatewayAPI, target != nil && target.GatewayAPI != nil
	switch {
	case wants && !has:
		return fmt.Errorf("TrafficRouter %s has type %s: name the route in gatewayAPI, and the Service of each variation in services", of.Name, of.Spec.Type)
	case has && !wants:
		return fmt.Errorf("TrafficRouter %s has type %s, which has no route: leave gatewayAPI and services out", of.Name, of.Spec.Type)
	}
	return nil
}

// checkClaim refuses a route that another release has already.
func (r *Registry) checkClaim(ctx context.Context, release *v1alpha1.ABRelease, target *v1alpha1.ReleaseRouter) error {
	if target == nil || target.GatewayAPI == nil {
		return nil
	}
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all, client.InNamespace(release.Namespace)); err != nil {
		return fmt.Errorf("listing the releases of namespace %s: %w", release.Namespace, err)
	}
	var claims []gatewayapi.Claim
	for i := range all.Items {
		claims = append(claims, claimsOf(&all.Items[i])...)
	}
	mine := claimOf(release, target.GatewayAPI)
	if holder, taken := gatewayapi.Holder(mine, claims); taken {
		return fmt.Errorf("%s %s belongs to release %s, which is older: give each release a route of its own", mine.Kind, mine.Route, holder)
	}
	return nil
}

func claimsOf(release *v1alpha1.ABRelease) (claims []gatewayapi.Claim) {
	for i := range release.Spec.Routers {
		if route := release.Spec.Routers[i].GatewayAPI; route != nil {
			claims = append(claims, claimOf(release, route))
		}
	}
	return claims
}

func claimOf(release *v1alpha1.ABRelease, route *v1alpha1.ReleaseRoute) gatewayapi.Claim {
	return gatewayapi.Claim{
		Release: client.ObjectKeyFromObject(release), Created: release.CreationTimestamp.Time,
		Kind: string(cmp.Or(route.Kind, v1alpha1.RouteHTTP)), Route: types.NamespacedName{Namespace: release.Namespace, Name: route.Name},
	}
}

// makeRoute returns the router of the route that a release names. State is that of the router before.
func (r *Registry) makeRoute(release *v1alpha1.ABRelease, of *v1alpha1.TrafficRouter, state gatewayapi.State) traffic.Router {
	target := release.Spec.Router(of.Name)
	kind := gatewayapi.HTTPRoute
	if target.GatewayAPI.Kind == v1alpha1.RouteGRPC {
		kind = gatewayapi.GRPCRoute
	}
	targets := gatewayapi.Targets{}
	for _, s := range target.Services {
		targets[string(s.Variation)] = gatewayapi.Target{Service: s.ServiceName, Port: s.Port}
	}
	return gatewayapi.New(gatewayapi.Config{
		Client: r.Routes, Kind: kind, Route: types.NamespacedName{Namespace: release.Namespace, Name: target.GatewayAPI.Name},
		Rule: target.GatewayAPI.Rule, Targets: targets, Settle: settleOf(&of.Spec), Manager: fieldManager, Now: r.Now, State: state,
	})
}

// States returns the states of the connected routers of a release, in the order of their names. The state of a router
// without a split has the name alone.
func (r *Registry) States(release types.NamespacedName) (states []v1alpha1.ReleaseRouterStatus) {
	for name, router := range r.routesOf(release) {
		states = append(states, statusOf(name, router.State()))
	}
	slices.SortFunc(states, func(a, b v1alpha1.ReleaseRouterStatus) int { return strings.Compare(a.Name, b.Name) })
	return states
}

// routesOf returns the routers of routes that a release has, by the name of the TrafficRouter.
func (r *Registry) routesOf(release types.NamespacedName) map[string]*gatewayapi.Router {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string]*gatewayapi.Router{}
	for at, has := range r.routes {
		if router, is := has.router.(*gatewayapi.Router); is && at.release == release {
			found[at.name] = router
		}
	}
	return found
}

func statusOf(name string, state gatewayapi.State) v1alpha1.ReleaseRouterStatus {
	status := v1alpha1.ReleaseRouterStatus{
		Name: name, Sequence: int64(state.Sequence), //nolint:gosec // the schema of the release bounds it
		Stable: v1alpha1.VariationName(state.Active), LastEditor: diff.TruncateText(diff.Printable(state.Editor), maxEditor),
	}
	for _, at := range state.Restored {
		status.Restores = append(status.Restores, v1alpha1.RouterRestore{RestoreTime: metav1.NewTime(at).Rfc3339Copy()})
	}
	return status
}

// stateOf returns the state that a former leader stored; the zero state if there is none.
func stateOf(release *v1alpha1.ABRelease, name string) gatewayapi.State {
	for i := range release.Status.Routers {
		if was := &release.Status.Routers[i]; was.Name == name {
			return gatewayapi.State{
				Sequence: uint64(was.Sequence), Active: string(was.Stable), Editor: was.LastEditor, //nolint:gosec // the schema has it above zero
				Restored: timesOf(was.Restores),
			}
		}
	}
	return gatewayapi.State{}
}

func timesOf(restores []v1alpha1.RouterRestore) (times []time.Time) {
	for _, r := range restores {
		times = append(times, r.RestoreTime.Time)
	}
	return times
}
