// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
)

// ground is the knowledge of routers: the mesh, the acknowledgments of proxies here and at
// the other replicas, and the counts of proxies.
type ground struct {
	from      *sources
	directory *Directory
	catalog   *Catalog
	index     *acknowledged.Index
	counts    *receive.Server
	others    *following
	changed   changed
	clock     clock.WithTicker
	began     time.Time
	times     Times
	told      *peerMetrics

	mu    sync.Mutex
	tally peers.Tally // of this replica
}

func newGround(s *service) (*ground, error) {
	others := &following{Replicas: s.Replicas, age: s.Watches.age, orders: &s.from.orders, pods: s.from.replicas(s.Replicas.Namespace), clock: s.Clock, log: s.Log, others: map[string]*other{}}
	told, err := newPeerMetrics(s.Registry, others)
	return &ground{
		from: s.from, directory: s.directory, catalog: s.catalog, index: s.told.index, counts: s.counts,
		others: others, changed: s.lookout.changed, clock: s.Clock, began: s.Clock.Now(), times: s.Times, told: told,
	}, err
}

// countEvery is the time between two notes of the counts. Proxies tell counts every ten
// seconds.
const countEvery = 5 * time.Second

// lead follows the other replicas, notes the counts of this replica, and sweeps.
func (g *ground) lead(ctx context.Context, sweep func()) {
	var notes sync.WaitGroup
	defer notes.Wait()
	notes.Go(func() {
		ticker := g.clock.NewTicker(countEvery)
		defer ticker.Stop()
		for ctx.Err() == nil {
			g.note()
			sweep()
			select {
			case <-ctx.Done():
			case <-ticker.C():
			}
		}
	})
	g.others.run(ctx)
}

func (g *ground) note() {
	counts := g.counted()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.tally.Add(g.began, counts, g.clock.Now()); err != nil {
		g.others.log.Error(err, "adding up the counts of proxies")
	}
}

// uncountedFor is how long a lack of room for the counts of a proxy is reported. A proxy tells
// its counts every ten seconds.
const uncountedFor = time.Minute

// counted returns the counts of all variations by the proxies of this replica.
func (g *ground) counted() (counts []peers.Count) {
	since := g.clock.Now().Add(-uncountedFor)
	for _, name := range g.catalog.Divided() {
		for _, v := range g.counts.Service(name.Namespace, name.Name, since).Variations {
			counts = append(counts, countOf(name, v))
		}
	}
	return counts
}

func countOf(service types.NamespacedName, v signals.Variation) peers.Count {
	c := peers.Count{Namespace: service.Namespace, Service: service.Name, Variation: v.Name, InFlight: v.InFlight, Uncounted: uint64(v.Uncounted)} //nolint:gosec // a number of proxies
	c.Completed, c.Failed = v.Total.Outcomes()
	return c
}

// serviceOf a release, as this replica publishes it, and the release.
func (g *ground) serviceOf(ctx context.Context, release types.NamespacedName) (s ir.Service, r v1alpha1.ABRelease, err error) {
	if !g.from.has(releaseKind) {
		return s, r, ErrUnsynced
	}
	if err := g.from.cache.Get(ctx, release, &r); err != nil {
		return s, r, fmt.Errorf("reading it: %w", err)
	}
	name := types.NamespacedName{Namespace: release.Namespace, Name: r.Spec.ServiceName}
	s, managed := g.catalog.Service(name)
	if !managed || s.Routing == nil {
		return s, r, fmt.Errorf("service %s is not divided here yet", name)
	}
	return s, r, nil
}

// gone says that a release is not there.
func (g *ground) gone(release types.NamespacedName) bool {
	var r v1alpha1.ABRelease
	return g.from.has(releaseKind) && apierrors.IsNotFound(g.from.cache.Get(context.Background(), release, &r))
}

// released is a release, without a uid when it is not there.
func (g *ground) released(ctx context.Context, release types.NamespacedName) (r v1alpha1.ABRelease) {
	if !g.from.has(releaseKind) || g.from.cache.Get(ctx, release, &r) != nil {
		return v1alpha1.ABRelease{}
	}
	return r
}

// scopes gives each pod with a proxy its scope. A namespace is looked up once.
func (d *Directory) scopes() func(*corev1.Pod) (Scope, bool) {
	once := &Directory{cluster: &remembering{Cluster: d.cluster, known: map[[2]string]string{}}, Gateways: d.Gateways}
	return func(pod *corev1.Pod) (Scope, bool) {
		if !once.isProxy(pod) {
			return Scope{}, false
		}
		s, _ := once.scope(pod)
		return s, true
	}
}

// remembering asks for each annotation once.
type remembering struct {
	Cluster
	known map[[2]string]string
}

// NamespaceAnnotation implements Cluster.
func (r *remembering) NamespaceAnnotation(namespace, annotation string) string {
	k := [2]string{namespace, annotation}
	value, known := r.known[k]
	if !known {
		value = r.Cluster.NamespaceAnnotation(namespace, annotation)
		r.known[k] = value
	}
	return value
}

// replicas returns all replicas, with their knowledge of the proxies that have to acknowledge a resource.
func (g *ground) replicas(wanted []acknowledged.Wanted) ([]acknowledged.Replica, error) {
	mirrors, known := g.others.all()
	if !known {
		return nil, errNotLeading
	}
	routes, uids := routesOf(wanted), make([]string, 0, len(wanted))
	for _, w := range wanted {
		uids = append(uids, w.UID)
	}
	all := []acknowledged.Replica{{Name: g.others.Name, Heard: true, Records: g.index.Records(uids, routes)}}
	now := g.clock.Now()
	for name, mirror := range mirrors {
		all = append(all, acknowledged.Replica{Name: name, Heard: mirror.Heard(now), Records: mirror.Records(uids, routes)})
	}
	return all, nil
}

// reported are the Services of the routes that proxies have on their streams, at all replicas.
func (g *ground) reported() (map[types.NamespacedName]bool, error) {
	mirrors, known := g.others.all()
	if !known {
		return nil, errNotLeading
	}
	routes, now := g.index.Held(), g.clock.Now()
	for name, mirror := range mirrors {
		if !mirror.Heard(now) {
			return nil, fmt.Errorf("replica %s is not heard", name)
		}
		maps.Copy(routes, mirror.Held())
	}
	services := map[types.NamespacedName]bool{}
	for route := range routes {
		if namespace, service, is := envoyxds.ServiceOf(ads.Key{Type: ads.Route, Name: route}); is {
			services[types.NamespacedName{Namespace: namespace, Name: service}] = true
		}
	}
	return services, nil
}

// errNotLeading says that this replica does not follow the others.
var errNotLeading = errors.New("the other replicas are not followed yet: only the one that leads does")

// arms are the variations of a split, with their counts since the split was applied.
func (g *ground) arms(service ir.Service, shares traffic.Shares, applied time.Time) []traffic.Arm {
	now := g.clock.Now()
	since := now.Add(-g.times.Window)
	if applied.After(since) {
		since = applied
	}
	counts, from := g.outcomes(service, since)
	arms := make([]traffic.Arm, 0, len(shares))
	for _, share := range shares {
		arm := traffic.Arm{Variation: share.Variation}
		if !from.IsZero() {
			c := counts[share.Variation]
			arm.Outcomes = &traffic.Outcomes{
				Window: max(0, now.Sub(from)), Completed: c.Completed, Failed: min(c.Failed, c.Completed), InFlight: int64(c.InFlight), Uncounted: c.Uncounted, //nolint:gosec // requests at once
			}
		}
		arms = append(arms, arm)
	}
	return arms
}

// outcomes returns the counts of all replicas that have counted requests, and the time since
// which all of these have; the zero time without such a replica. Counts from longer before
// than the time between two notes are left out.
func (g *ground) outcomes(service ir.Service, since time.Time) (sum map[string]peers.Count, from time.Time) {
	if _, all := g.sum(service, since); all.After(since) {
		since = all
	}
	return g.sum(service, since)
}

// sum returns the counts since a time, and the time since which the last of them is known.
func (g *ground) sum(service ir.Service, since time.Time) (sum map[string]peers.Count, from time.Time) {
	sum = map[string]peers.Count{}
	add := func(counts map[string]peers.Count, at time.Time) {
		for name, c := range counts {
			s := sum[name]
			s.Completed, s.Failed, s.InFlight = s.Completed+c.Completed, s.Failed+c.Failed, s.InFlight+c.InFlight
			s.Uncounted += c.Uncounted
			sum[name] = s
		}
		if at.After(from) {
			from = at
		}
	}
	g.mu.Lock()
	add(g.tally.Since(service.Namespace, service.Name, since))
	g.mu.Unlock()
	mirrors, _ := g.others.all()
	for _, mirror := range mirrors {
		add(mirror.Counted(service.Namespace, service.Name, since))
	}
	return sum, from
}
