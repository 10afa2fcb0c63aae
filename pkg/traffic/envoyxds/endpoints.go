// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"cmp"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// The priorities of Envoy's endpoints: a request goes to the second while no endpoint of the
// first can be reached.
const (
	own      uint32 = 0
	failover uint32 = 1
)

// destinations are the endpoints of one cluster.
type destinations struct {
	own []ir.Endpoint
	// failover are the endpoints of the stable variation, behind those of another one.
	failover []ir.Endpoint
}

// destinationsOf a slot. A request that a header forces to a variation is never sent to
// another one, and the share of the stable variation is given to no other.
func destinationsOf(s ir.Service, p ir.Port, slot ir.Slot, forced bool) destinations {
	d := destinations{own: slot.Endpoints}
	if s.Routing == nil || forced || slot.Variation == s.Routing.Shares.Stable() {
		return d
	}
	for _, other := range p.Slots {
		if other.Variation == s.Routing.Shares.Stable() {
			d.failover = other.Endpoints
		}
	}
	return d
}

func (t destinations) digest(d *digest) {
	for _, endpoints := range [][]ir.Endpoint{t.own, t.failover} {
		d.number(len(endpoints))
		for _, e := range endpoints {
			d.add(e.Address.String(), e.Locality.Region, e.Locality.Zone, e.State.String())
		}
	}
}

func (t destinations) assignment(cluster string) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: cluster, Policy: keepsItsShare()}
	a.Endpoints = slices.Concat(groups(t.own, own), groups(t.failover, failover))
	return a
}

// groups endpoints by locality, in whose order they are.
func groups(endpoints []ir.Endpoint, priority uint32) []*endpointv3.LocalityLbEndpoints {
	var all []*endpointv3.LocalityLbEndpoints
	byPlace := serving(endpoints)
	slices.SortStableFunc(byPlace, func(a, b ir.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Locality.Region, b.Locality.Region), cmp.Compare(a.Locality.Zone, b.Locality.Zone))
	})
	var last *ir.Locality
	for _, e := range byPlace {
		if last == nil || *last != e.Locality {
			all = append(all, &endpointv3.LocalityLbEndpoints{Locality: locality(e.Locality), Priority: priority})
			last = &e.Locality
		}
		group := all[len(all)-1]
		group.LbEndpoints = append(group.LbEndpoints, endpoint(e, priority))
	}
	return all
}

// serving are the endpoints that may get requests. One that is draining gets requests if no
// endpoint is ready, as kube-proxy does
// (https://kubernetes.io/docs/reference/networking/virtual-ips/#traffic-to-terminating-endpoints).
// One that leaves the list finishes the requests that it has.
func serving(endpoints []ir.Endpoint) []ir.Endpoint {
	ready := slices.ContainsFunc(endpoints, func(e ir.Endpoint) bool { return e.State == ir.Ready })
	return slices.DeleteFunc(slices.Clone(endpoints), func(e ir.Endpoint) bool {
		return e.State == ir.Quarantined || e.State == ir.Draining && ready
	})
}

func locality(l ir.Locality) *corev3.Locality {
	if l == (ir.Locality{}) {
		return nil
	}
	return &corev3.Locality{Region: l.Region, Zone: l.Zone}
}

// endpoint of a priority. Envoy has counters of their own for endpoints with the metadata
// "canary": with these a proxy tells how many requests the stable variation has served for
// another one.
func endpoint(e ir.Endpoint, priority uint32) *endpointv3.LbEndpoint {
	lb := &endpointv3.LbEndpoint{
		HealthStatus:   corev3.HealthStatus_HEALTHY,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(e.Address)}},
	}
	if priority == failover {
		lb.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"envoy.lb": {Fields: map[string]*structpb.Value{"canary": structpb.NewBoolValue(true)}},
		}}
	}
	return lb
}

func socket(a netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       a.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Port())},
	}}}
}
