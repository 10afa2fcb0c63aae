// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// FindArms returns the addresses that get the requests of each variation on a port of a Service, for a router that is no
// proxy of the mesh. The addresses are those of pods, as [Build] has them. Ready endpoints count; where a variation has no
// ready endpoint, draining endpoints count, and then endpoints that are not ready. An endpoint in quarantine never counts.
// FindArms returns nil if the split is invalid, or the Service does not have the port.
func FindArms(svc *corev1.Service, split traffic.Split, port uint16, pods []Pod, quarantined []traffic.Workload) map[string][]netip.AddrPort {
	declared := findPort(svc, port)
	if declared == nil || split.Validate() != nil {
		return nil
	}
	b := newBuilder(Inputs{Pods: pods, Quarantined: quarantined})
	arms := map[string][]netip.AddrPort{}
	for _, slot := range b.slotsOf(svc, *declared, split.Shares, serve(split, b.members(svc, split))) {
		arms[slot.Variation] = bestAddresses(slot.Endpoints)
	}
	return arms
}

// FindAddresses returns the addresses behind a port of a Service that is not divided. The addresses are those of
// EndpointSlices, and count as in [FindArms].
func FindAddresses(svc *corev1.Service, port uint16, all []*discoveryv1.EndpointSlice, pods []Pod, quarantined []traffic.Workload) []netip.AddrPort {
	declared := findPort(svc, port)
	if declared == nil {
		return nil
	}
	b := newBuilder(Inputs{Slices: all, Pods: pods, Quarantined: quarantined})
	return bestAddresses(b.fromSlices(svc, *declared))
}

// findPort returns nil for a port that the Service does not have.
func findPort(svc *corev1.Service, port uint16) *corev1.ServicePort {
	at := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return tcp(p.Protocol) && p.Port == int32(port) })
	if at < 0 {
		return nil
	}
	return &svc.Spec.Ports[at]
}

// bestAddresses returns the addresses of the endpoints in the best state that there is.
func bestAddresses(endpoints []Endpoint) (addresses []netip.AddrPort) {
	best := Quarantined
	for _, e := range endpoints {
		best = min(best, e.State)
	}
	if best == Quarantined {
		return nil
	}
	for _, e := range endpoints {
		if e.State == best {
			addresses = append(addresses, e.Address)
		}
	}
	return addresses
}
