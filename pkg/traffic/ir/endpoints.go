// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// endpointSet holds one endpoint for each address: slices repeat one while it moves
// from one slice to another.
type endpointSet map[netip.AddrPort]Endpoint

func (s endpointSet) add(e Endpoint) {
	before, seen := s[e.Address]
	if e.State != absent && (!seen || cmp.Or(cmp.Compare(e.State, before.State),
		cmp.Compare(e.Locality.Zone, before.Locality.Zone), cmp.Compare(e.Locality.Region, before.Locality.Region)) < 0) {
		s[e.Address] = e
	}
}

func (s endpointSet) sorted() []Endpoint {
	if len(s) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(s), func(a, b Endpoint) int {
		return a.Address.Compare(b.Address)
	})
}

// fromSlices are the endpoints of a port of a Service without a split. Of a Service
// with two families those of the preferred one, since the pods are the same.
func (b *builder) fromSlices(svc *corev1.Service, port corev1.ServicePort) []Endpoint {
	families := map[discoveryv1.AddressType]endpointSet{}
	for _, slice := range b.slices[key(svc)] {
		for _, p := range slice.Ports {
			if p.Port == nil || deref(p.Name) != port.Name || !tcp(deref(p.Protocol)) {
				continue
			}
			if families[slice.AddressType] == nil {
				families[slice.AddressType] = endpointSet{}
			}
			b.addSlice(families[slice.AddressType], key(svc), slice, uint16(*p.Port)) //nolint:gosec // the API server admits 1 to 65535
		}
	}
	preferred, other := discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	if prefersV6(svc) {
		preferred, other = other, preferred
	}
	if set := families[preferred]; len(set) > 0 {
		return set.sorted()
	}
	return families[other].sorted()
}

func (b *builder) addSlice(set endpointSet, of types.NamespacedName, slice *discoveryv1.EndpointSlice, port uint16) {
	for _, e := range slice.Endpoints {
		state := sliceState(e.Conditions)
		if t := e.TargetRef; t != nil && t.Kind == "Pod" && b.quarantined[b.workloads[[2]string{slice.Namespace, t.Name}]] {
			state = max(state, Quarantined)
		}
		for _, text := range e.Addresses {
			if addr, err := netip.ParseAddr(text); err == nil {
				set.add(Endpoint{netip.AddrPortFrom(addr, port), b.localityOf(of, deref(e.NodeName), deref(e.Zone)), state})
			}
		}
	}
}

// sliceState follows the API: what is not said of ready means true, of serving that
// it is as ready, of terminating false.
func sliceState(c discoveryv1.EndpointConditions) State {
	ready := c.Ready == nil || *c.Ready
	switch {
	case ready:
		return Ready
	case deref(c.Serving) && deref(c.Terminating):
		return Draining
	default:
		return absent
	}
}

// fromPods are the endpoints of a variation. They come from pods and never from
// slices, since a variation's pods need not be the Service's: so nobody without a
// proxy gets to one that has no share.
func (b *builder) fromPods(svc *corev1.Service, port corev1.ServicePort, pods []Pod) []Endpoint {
	set := endpointSet{}
	for _, p := range pods {
		state := p.state(svc.Spec.PublishNotReadyAddresses)
		number := targetPort(port, p)
		if state == absent || number == 0 {
			continue
		}
		if b.quarantined[p.Workload] {
			state = Quarantined
		}
		address := netip.AddrPortFrom(p.address(prefersV6(svc)), number)
		set.add(Endpoint{address, b.localityOf(key(svc), p.Node, ""), state})
	}
	return set.sorted()
}

// withoutUnready leaves endpoints that are not ready to a variation that has no others,
// and only while the stable one, which is first, can have its share: that is taken from
// it then, by [traffic.Clamp]. A route and the endpoints behind it do not change at the
// same moment, so they stay when it has no share any more, and get nothing then.
func withoutUnready(slots []Slot) {
	saved := len(slots) > 0 && slices.ContainsFunc(slots[0].Endpoints, func(e Endpoint) bool { return e.State == Ready })
	for i := range slots {
		better := slices.ContainsFunc(slots[i].Endpoints, func(e Endpoint) bool { return e.State < Unready })
		if i == 0 || better || !saved {
			slots[i].Endpoints = slices.DeleteFunc(slots[i].Endpoints, func(e Endpoint) bool { return e.State == Unready })
		}
	}
}

// targetPort is 0 for a pod that has none of that name.
func targetPort(port corev1.ServicePort, p Pod) uint16 {
	switch target := port.TargetPort; {
	case target.Type == intstr.String:
		return p.Ports[target.StrVal]
	case target.IntVal != 0:
		return uint16(target.IntVal) //nolint:gosec // the API server admits 1 to 65535
	default:
		return uint16(port.Port) //nolint:gosec // the API server admits 1 to 65535
	}
}

// localityOf an endpoint of a Service prefers what is known of the node, which has the region as well. It
// notes that the Service depends on the node, also on one that is not known yet.
func (b *builder) localityOf(of types.NamespacedName, node, zone string) Locality {
	if node != "" {
		if b.nodes[of] == nil {
			b.nodes[of] = map[string]bool{}
		}
		b.nodes[of][node] = true
	}
	if l, known := b.in.Localities[node]; known {
		return l
	}
	return Locality{Zone: zone}
}

func prefersV6(svc *corev1.Service) bool {
	return len(svc.Spec.IPFamilies) > 0 && svc.Spec.IPFamilies[0] == corev1.IPv6Protocol
}

func deref[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}
