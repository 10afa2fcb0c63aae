// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/composite"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Connectors connects releases with the routers of TrafficRouters.
type Connectors interface {
	// Connect returns the router by its name, and the same one until the TrafficRouter changes. The error says why the
	// release cannot have it.
	Connect(ctx context.Context, release *v1alpha1.ABRelease, name string) (traffic.Router, error)
	// States returns what the next leader needs of each router of a release that is connected. A router without a split
	// has no sequence.
	States(release types.NamespacedName) []v1alpha1.ReleaseRouterStatus
	// Forget drops the routers of a release that is gone.
	Forget(release types.NamespacedName)
}

// errNoRouters says that the installation has no TrafficRouters.
var errNoRouters = errors.New("spec.routers: TrafficRouters are not enabled here: set routers.enabled in the values of the chart")

// connect returns the router of all parts that a release names.
func (r *Reconciler) connect(ctx context.Context, of *v1alpha1.ABRelease) traffic.Router {
	mesh := r.Routers.Router(client.ObjectKeyFromObject(of))
	if !of.Spec.HasConnectors() {
		return mesh
	}
	parts := make([]composite.Part, len(of.Spec.Routers))
	for i := range of.Spec.Routers {
		name := of.Spec.Routers[i].Name
		parts[i] = composite.Part{Name: name, Router: mesh}
		if name != v1alpha1.RouterMesh {
			parts[i].Router = r.connector(ctx, of, name)
		}
	}
	if len(parts) == 1 {
		return parts[0].Router
	}
	return composite.New(parts[0], parts[1:]...)
}

func (r *Reconciler) connector(ctx context.Context, of *v1alpha1.ABRelease, name string) traffic.Router {
	if r.Connectors == nil {
		return refusing{errNoRouters}
	}
	router, err := r.Connectors.Connect(ctx, of, name)
	if err != nil {
		return refusing{fmt.Errorf("spec.routers: %w", err)}
	}
	return router
}

func (r *Reconciler) forgetConnectors(name types.NamespacedName) {
	if r.Connectors != nil {
		r.Connectors.Forget(name)
	}
}

// writeRouters stores what the next leader needs of each router. A router that is not connected keeps its entry.
func (r *Reconciler) writeRouters(s *subject, status *v1alpha1.ABReleaseStatus) {
	if r.Connectors == nil {
		return
	}
	for _, now := range r.Connectors.States(client.ObjectKeyFromObject(s.release)) {
		status.Routers = slices.DeleteFunc(status.Routers, func(was v1alpha1.ReleaseRouterStatus) bool { return was.Name == now.Name })
		if now.Sequence > 0 {
			status.Routers = append(status.Routers, now)
		}
	}
	slices.SortFunc(status.Routers, func(a, b v1alpha1.ReleaseRouterStatus) int { return strings.Compare(a.Name, b.Name) })
}

// tellRestores makes an Event of each router that has restored its weights since a status.
func (r *Reconciler) tellRestores(s *subject, was *v1alpha1.ABReleaseStatus) {
	for _, router := range s.release.Status.Routers {
		if lastRestore(&s.release.Status, router.Name).After(lastRestore(was, router.Name)) {
			r.event(s, true, string(release.RouteChangedByAnother), fmt.Sprintf("router %s: field manager %q changed the weights of the route, and the router restored them", router.Name, router.LastEditor))
		}
	}
}

// lastRestore returns the time of the last restore of a router; the zero time if there was none.
func lastRestore(status *v1alpha1.ABReleaseStatus, router string) (last time.Time) {
	for i := range status.Routers {
		if restores := status.Routers[i].Restores; status.Routers[i].Name == router && len(restores) > 0 {
			last = restores[len(restores)-1].RestoreTime.Time
		}
	}
	return last
}

// refusing is the router of a TrafficRouter that a release cannot have. It refuses each split with the reason, and has
// all capabilities, so that no other reason stands beside it. There is no split to remove.
type refusing struct{ reason error }

func (refusing) Capabilities() traffic.Capabilities { return traffic.FullCapabilities() }

func (r refusing) Validate(traffic.Split) error { return r.reason }

func (r refusing) Apply(context.Context, traffic.Split) error { return r.reason }

func (refusing) Remove(context.Context) error { return nil }

func (r refusing) Observe(context.Context) (traffic.Observation, error) {
	return traffic.Observation{}, r.reason
}

func (r refusing) Measure(context.Context, traffic.Cursor) (traffic.Measurement, error) {
	return traffic.Measurement{}, r.reason
}

// returnTerms gives all requests to the stable variation when a release goes that connectors carry out: these keep
// their last split, as no proxy does.
func (s *subject) returnTerms(terms release.Terms) release.Terms {
	if !s.deleting() || !s.release.Spec.HasConnectors() || s.release.Spec.Rollout != nil {
		return terms
	}
	return terms.Return()
}

// holdConnectors keeps a release whose split a connector can have until the requests have returned.
func (r *Reconciler) holdConnectors(ctx context.Context, s *subject) error {
	if !s.release.Spec.HasConnectors() || s.decision.After == nil || s.deleting() {
		return nil
	}
	return r.changeFinalizer(ctx, s, controllerutil.AddFinalizer)
}

// returned tells whether the routers have all requests of a release that goes at its stable variation. A release that
// its routers refuse, and one whose Service is not there, has none to return.
func (s *subject) returned() bool {
	if s.decision.After == nil || s.invalid != nil {
		return true
	}
	has := s.acknowledged() || s.standing() == release.Unrouted // a route that is gone sends no request to a variation
	return has && s.decision.After.Split.Shares[0].Weight == traffic.Total
}

// findRouted finds the releases that name a TrafficRouter.
func (r *Reconciler) findRouted(ctx context.Context, router client.Object) (requests []reconcile.Request) {
	var all v1alpha1.ABReleaseList
	if err := r.Client.List(ctx, &all); err != nil {
		r.Log.Error(err, "listing releases")
		return nil
	}
	for i := range all.Items {
		if all.Items[i].Spec.NamesRouter(router.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
