// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"cmp"
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func digestEndpoints(d *digest, endpoints []ir.Endpoint) {
	for _, e := range endpoints {
		d.add(e.Address.String(), e.Locality.Region, e.Locality.Zone, e.State.String())
	}
}

// assignment groups endpoints by locality, in whose order they are.
func assignment(cluster string, endpoints []ir.Endpoint) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	ready := slices.ContainsFunc(endpoints, func(e ir.Endpoint) bool { return e.State == ir.Ready })
	byPlace := slices.Clone(endpoints)
	slices.SortStableFunc(byPlace, func(a, b ir.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Locality.Region, b.Locality.Region), cmp.Compare(a.Locality.Zone, b.Locality.Zone))
	})
	var last *ir.Locality
	for _, e := range byPlace {
		if last == nil || *last != e.Locality {
			a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{Locality: locality(e.Locality)})
			last = &e.Locality
		}
		group := a.Endpoints[len(a.Endpoints)-1]
		group.LbEndpoints = append(group.LbEndpoints, endpoint(e, ready))
	}
	return a
}

func locality(l ir.Locality) *corev3.Locality {
	if l == (ir.Locality{}) {
		return nil
	}
	return &corev3.Locality{Region: l.Region, Zone: l.Zone}
}

// endpoint that is draining gets requests if there is nobody else, as kube-proxy does
// (https://kubernetes.io/docs/reference/networking/virtual-ips/#traffic-to-terminating-endpoints).
func endpoint(e ir.Endpoint, ready bool) *endpointv3.LbEndpoint {
	health := corev3.HealthStatus_HEALTHY
	if e.State == ir.Quarantined || e.State == ir.Draining && ready {
		health = corev3.HealthStatus_DRAINING
	}
	return &endpointv3.LbEndpoint{
		HealthStatus:   health,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(e.Address)}},
	}
}

func socket(a netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       a.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Port())},
	}}}
}
