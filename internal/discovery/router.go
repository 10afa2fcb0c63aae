// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/connectors"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// Routers carry splits out by proxies. They outlive those who use them, and may be
// used by many at once. They know nothing before the mesh is served, which is
// [ErrUnsynced], and of other replicas as long as [Routers.Lead] runs.
type Routers struct {
	mu     sync.Mutex
	on     *ground
	opened chan struct{} // closed once on is there
	routes map[types.NamespacedName]*Envoy
}

// NewRouters know nothing yet.
func NewRouters() *Routers {
	return &Routers{opened: make(chan struct{}), routes: map[types.NamespacedName]*Envoy{}}
}

// Router of a release. That of one which is not there is not kept.
func (r *Routers) Router(release types.NamespacedName) traffic.Router {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on != nil && r.on.gone(release) {
		r.on.told.forget(release)
		delete(r.routes, release)
		return &Envoy{of: r, release: release}
	}
	e := r.routes[release]
	if e == nil {
		e = &Envoy{of: r, release: release}
		r.routes[release] = e
	}
	return e
}

// sweep forgets the routers of releases that are gone. When somebody asked for one last,
// its release may have been there still.
func (r *Routers) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for release := range r.routes {
		if r.on != nil && r.on.gone(release) {
			r.on.told.forget(release)
			delete(r.routes, release)
		}
	}
}

// Lead follows the other replicas until ctx ends, from when the mesh is served.
func (r *Routers) Lead(ctx context.Context) error {
	select {
	case <-r.opened:
	case <-ctx.Done():
		return nil
	}
	on, err := r.ground()
	if err != nil {
		return err
	}
	on.lead(ctx, r.sweep)
	return nil
}

// Reported are the Services of which a proxy has a route on its stream, at any replica.
func (r *Routers) Reported() (map[types.NamespacedName]bool, error) {
	on, err := r.ground()
	if err != nil {
		return nil, err
	}
	return on.reported()
}

// open has them know what there is.
func (r *Routers) open(on *ground) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on == nil {
		r.on = on
		close(r.opened)
	}
}

// ground is what the routers stand on.
func (r *Routers) ground() (*ground, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on == nil {
		return nil, ErrUnsynced
	}
	return r.on, nil
}

// history is how many decisions are remembered of a release.
const history = 64

// Envoy carries out the split of one release by the proxies of a mesh: sidecars and
// gateways. It implements traffic.Router.
//
// What a split is, all replicas read in the status of the release, and that it is gone in
// the API, so nothing is sent from here: to apply it makes this replica look at once, and
// says what it is that the proxies have to acknowledge.
type Envoy struct {
	of      *Routers
	release types.NamespacedName

	mu     sync.Mutex
	shares traffic.Shares
	// applied are the last decisions, in ascending order, about the release with this
	// uid: one that is made anew under its name begins anew, if need be for another
	// Service.
	applied []acknowledged.Applied
	uid     types.UID
	// ahead is since when proxies have a later decision than there is; zero while none has.
	ahead time.Time
}

var _ traffic.Router = (*Envoy)(nil)

// Capabilities implements traffic.Router.
func (e *Envoy) Capabilities() traffic.Capabilities { return connectors.Mesh.Capabilities }

// Validate implements traffic.Router. Names, values and the salt go into configurations of Envoy.
func (e *Envoy) Validate(split traffic.Split) error {
	if err := split.Validate(); err != nil {
		return err
	}
	errs := []error{e.Capabilities().Check(split)}
	for _, p := range ir.Check(split) {
		errs = append(errs, errors.New(p.Message))
	}
	return errors.Join(errs...)
}

// Remove implements traffic.Router.
func (e *Envoy) Remove(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shares, e.applied, e.uid, e.ahead = nil, nil, "", time.Time{}
	return nil
}

// Apply implements traffic.Router.
func (e *Envoy) Apply(ctx context.Context, split traffic.Split) error {
	sequence := split.Sequence
	if err := e.Validate(split); err != nil {
		return fmt.Errorf("applying sequence %d of release %s: %w", sequence, e.release, err)
	}
	on, err := e.of.ground()
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := on.released(ctx, e.release)
	if r.UID != "" && r.UID != e.uid {
		e.uid, e.applied = r.UID, nil
	}
	var last uint64
	if n := len(e.applied); n > 0 {
		last = e.applied[n-1].Sequence
	}
	switch {
	case sequence == 0 || sequence < last:
		return fmt.Errorf("applying sequence %d of release %s: %w", sequence, e.release, &traffic.LaterError{Sequence: last})
	case sequence == last:
		return nil
	}
	e.shares = slices.Clone(split.Shares)
	e.applied = append(e.applied, acknowledged.Applied{Sequence: sequence, At: on.clock.Now()})
	e.applied = e.applied[max(0, len(e.applied)-history):]
	on.changed(AtOnce, dirty{services: servicesOf(&r)})
	return nil
}

// Observe implements traffic.Router.
func (e *Envoy) Observe(ctx context.Context) (traffic.Observation, error) {
	on, err := e.of.ground()
	if err != nil {
		return traffic.Observation{}, err
	}
	service, r, err := on.serviceOf(ctx, e.release)
	if err != nil {
		return traffic.Observation{}, fmt.Errorf("observing release %s: %w", e.release, err)
	}
	_, shared := on.catalog.Edge()
	stored := service.Sequence
	if _, ordered, _ := on.from.orders.split(&r); ordered {
		stored-- // the sum of the gateways' routes does not have an order
	}
	shares, applied := e.since(stored, shared)
	if len(applied) == 0 {
		return traffic.Observation{}, fmt.Errorf("observing release %s: no split was applied yet", e.release)
	}
	wanted, err := on.wanted(ctx, service, &r)
	if err != nil {
		return traffic.Observation{}, fmt.Errorf("observing release %s: %w", e.release, err)
	}
	neighbors, err := on.from.podsOf(ctx, e.release.Namespace)
	if err != nil {
		return traffic.Observation{}, fmt.Errorf("observing release %s: %w", e.release, err)
	}
	replicas, err := on.replicas(wanted)
	if err != nil {
		return traffic.Observation{}, fmt.Errorf("observing release %s: %w", e.release, err)
	}
	question := acknowledged.Question{
		Now: on.clock.Now(), Applied: applied, Wanted: wanted, Replicas: replicas, Since: on.began, OldConnections: on.times.OldConnections, Silence: on.times.Silence,
		Newest: on.catalog.Versions(types.NamespacedName{Namespace: service.Namespace, Name: service.Name}),
	}
	if r.Status.ManagementStartTime != nil {
		question.ManagedSince = r.Status.ManagementStartTime.Time
	}
	seen := acknowledged.Judge(question)
	seen.Around = around(neighbors, on.directory.scopes(), wanted)
	seen.Ahead = e.lastingly(seen.Ahead, on.clock.Now())
	seen.Arms = on.arms(service, shares, applied[len(applied)-1].At)
	on.told.unacknowledgedProxies(e.release, seen)
	return seen, nil
}

// wanted are the proxies that have to acknowledge a release of a service.
func (g *ground) wanted(ctx context.Context, service ir.Service, r *v1alpha1.ABRelease) ([]acknowledged.Wanted, error) {
	pods, err := g.from.injectedPods(ctx)
	if err != nil {
		return nil, err
	}
	routes, _ := g.catalog.Edge()
	v := voters{service, g.directory.scopes(), routes, g.from.fitness(ctx), release.PolicyOf(r.Spec.Acknowledgment).Same}
	return v.wanted(pods), nil
}

// aheadLasts is how long proxies have to be ahead until the release is: replicas see a decision
// within milliseconds of each other.
const aheadLasts = 3 * time.Second

// lastingly is how far proxies are ahead, once they have been so for a while: another replica may
// have published a decision that this one has not seen yet.
func (e *Envoy) lastingly(ahead uint64, now time.Time) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case ahead == 0:
		e.ahead = time.Time{}
	case e.ahead.IsZero():
		e.ahead = now
	case now.Sub(e.ahead) >= aheadLasts:
		e.ahead = time.Time{} // what follows is another decision
		return ahead
	}
	return 0
}

// since is what was applied. Once a decision is in the store and among what this replica publishes, so
// is it in the routes of gateways from their present sequence on.
func (e *Envoy) since(stored, shared uint64) (traffic.Shares, []acknowledged.Applied) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.applied {
		if a := &e.applied[i]; a.Shared == 0 && a.Sequence <= stored {
			a.Shared = shared
		}
	}
	return e.shares, slices.Clone(e.applied)
}

// routesOf all of them, each once.
func routesOf(wanted []acknowledged.Wanted) []string {
	var routes []string
	for _, w := range wanted {
		for _, r := range w.Routes {
			if !slices.Contains(routes, r) {
				routes = append(routes, r)
			}
		}
	}
	return routes
}
