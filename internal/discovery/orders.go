// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// orders are the prepared rollbacks that a leader has ordered, and that no status of a release is
// beyond yet. An order is kept until then: a replica that dropped it would go back. The zero orders are
// none.
type orders struct {
	mu sync.Mutex
	of map[types.UID][]uint64
	// added is closed when there is one more; nil if no one waits for that.
	added chan struct{}
}

// maxOrders bounds the releases with orders, and maxOrdersOfOne the orders of one release. Replicas alone
// give orders; more than these are a fault of theirs.
const (
	maxOrders      = 10_000
	maxOrdersOfOne = 16
)

// add keeps an order, and tells whether it is new.
func (o *orders) add(uid types.UID, sequence uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.of[uid]
	if slices.Contains(of, sequence) || len(of) >= maxOrdersOfOne || of == nil && len(o.of) >= maxOrders {
		return false
	}
	if o.of == nil {
		o.of = map[types.UID][]uint64{}
	}
	o.of[uid] = append(of, sequence)
	if o.added != nil {
		close(o.added)
		o.added = nil
	}
	return true
}

// split returns what a release has in force, as the status and the orders say, and tells whether an order
// is obeyed. Orders that the status is beyond are forgotten.
func (o *orders) split(r *v1alpha1.ABRelease) (split traffic.Split, ordered, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.of[r.UID]
	split, ordered, is = release.Obey(r, of)
	if is && !ordered && len(of) > 0 {
		of = slices.DeleteFunc(slices.Clone(of), func(sequence uint64) bool { return sequence <= split.Sequence })
		if o.of[r.UID] = of; len(of) == 0 {
			delete(o.of, r.UID)
		}
	}
	return split, ordered, is
}

// all orders, in the order of the uids.
func (o *orders) all() (all []peers.Order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, of := range o.of {
		for _, sequence := range of {
			all = append(all, peers.Order{Release: string(uid), Sequence: sequence})
		}
	}
	slices.SortFunc(all, peers.Order.Compare)
	return all
}

// changed is closed when there is one more order.
func (o *orders) changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.added == nil {
		o.added = make(chan struct{})
	}
	return o.added
}

// keep forgets the orders of all other releases.
func (o *orders) keep(uids map[types.UID]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid := range o.of {
		if !uids[uid] {
			delete(o.of, uid)
		}
	}
}

// obey takes orders, and publishes what follows from those that are new.
func (g *ground) obey(given []peers.Order) {
	fresh := map[types.UID]bool{}
	for _, order := range given {
		if uid := types.UID(order.Release); g.from.orders.add(uid, order.Sequence) {
			fresh[uid] = true
			g.others.log.Info("the prepared rollback of a release is ordered", "uid", order.Release, "sequence", order.Sequence)
		}
	}
	if len(fresh) == 0 || !g.from.has(releaseKind) {
		return
	}
	var releases v1alpha1.ABReleaseList
	if err := g.from.list(context.Background(), &releases); err != nil {
		g.others.log.Error(err, "looking which releases are ordered back")
		return
	}
	there := make(map[types.UID]bool, len(releases.Items))
	for i := range releases.Items {
		r := &releases.Items[i]
		there[r.UID] = true
		if fresh[r.UID] {
			g.changed(AtOnce, dirty{services: servicesOf(r)})
		}
	}
	g.from.orders.keep(there)
}

// Order has all replicas carry out the prepared rollback of a release.
func (r *Routers) Order(uid types.UID, sequence uint64) error {
	on, err := r.ground()
	if err != nil {
		return fmt.Errorf("ordering sequence %d of the release with uid %s: %w", sequence, uid, err)
	}
	on.obey([]peers.Order{{Release: string(uid), Sequence: sequence}})
	return nil
}

// Ordered tells whether this replica knows of an order to carry out the prepared rollback of a release.
func (r *Routers) Ordered(uid types.UID, sequence uint64) bool {
	on, err := r.ground()
	return err == nil && slices.Contains(on.from.orders.all(), peers.Order{Release: string(uid), Sequence: sequence})
}

// splitsIn reads the splits of a Service, and the releases of which an order is obeyed.
func (s *sources) splitsIn(ctx context.Context, service types.NamespacedName) (splits []traffic.Split, ordered []types.NamespacedName, err error) {
	var releases v1alpha1.ABReleaseList
	if err := s.list(ctx, &releases, client.InNamespace(service.Namespace), client.MatchingFields{releaseField: service.Name}); err != nil {
		return nil, nil, err
	}
	for i := range releases.Items {
		split, isOrdered, is := s.orders.split(&releases.Items[i])
		if !is {
			continue
		}
		splits = append(splits, split)
		if isOrdered {
			ordered = append(ordered, types.NamespacedName{Namespace: split.Namespace, Name: split.Name})
		}
	}
	return splits, ordered, nil
}
