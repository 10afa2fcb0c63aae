// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"net/netip"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/endpoints"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// FindArms finds the addresses of each variation of a split behind a port, for a router that is no proxy of the mesh. It
// returns [ErrUnsynced] before the caches are synced.
func (w *Window) FindArms(ctx context.Context, split traffic.Split, port uint16) (map[string][]netip.AddrPort, error) {
	from, err := w.opened()
	if err != nil {
		return nil, err
	}
	return endpoints.Counter{Reader: from.cache, Quarantined: from.quarantined}.FindArms(ctx, split, port)
}

// FindAddresses finds the addresses behind a port of a Service that is not divided. It returns [ErrUnsynced] before the
// caches are synced.
func (w *Window) FindAddresses(ctx context.Context, service types.NamespacedName, port uint16) ([]netip.AddrPort, error) {
	from, err := w.opened()
	if err != nil {
		return nil, err
	}
	return endpoints.Counter{Reader: from.cache, Quarantined: from.quarantined}.FindAddresses(ctx, service, port)
}

// Lease returns the lease of the leader, as the cache has it. It returns [ErrUnsynced] before the caches are synced.
func (w *Window) Lease(ctx context.Context) (*coordinationv1.Lease, error) {
	from, err := w.opened()
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	if err := from.cache.Get(ctx, client.ObjectKey{Namespace: from.namespace, Name: from.lease}, lease); err != nil {
		return nil, fmt.Errorf("reading lease %s: %w", from.lease, err)
	}
	return lease, nil
}

// Replicas returns the addresses of the running pods of the discovery server in a namespace, but for the pod with the
// given name. It returns [ErrUnsynced] before the caches are synced.
func (w *Window) Replicas(ctx context.Context, namespace, own string) ([]netip.Addr, error) {
	from, err := w.opened()
	if err != nil {
		return nil, err
	}
	pods, err := from.replicas(namespace)(ctx)
	if err != nil {
		return nil, err
	}
	var others []netip.Addr
	for i := range pods {
		if pods[i].Name == own || pods[i].Status.Phase != corev1.PodRunning || len(pods[i].Status.PodIPs) == 0 {
			continue
		}
		if at, err := netip.ParseAddr(pods[i].Status.PodIPs[0].IP); err == nil {
			others = append(others, at)
		}
	}
	return others, nil
}
