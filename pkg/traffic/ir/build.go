// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// builder is what Build looks up while it works.
type builder struct {
	in          Inputs
	slices      map[types.NamespacedName][]*discoveryv1.EndpointSlice
	pods        map[string][]Pod               // by namespace, sorted
	workloads   map[[2]string]traffic.Workload // by namespace and name of a pod
	quarantined map[traffic.Workload]bool
	splits      map[types.NamespacedName]traffic.Split   // by Service; the first one
	served      map[string]Object                        // by host of gateways
	exports     map[string]Export                        // by namespace
	nodes       map[types.NamespacedName]map[string]bool // of endpoints, by Service
	problems    []Problem
}

// Build makes the mesh. The order of what it is given does not matter.
func Build(in Inputs) Mesh { return newBuilder(in).build() }

func (b *builder) build() Mesh {
	in := b.in
	mesh := Mesh{Sequence: b.total()}
	taken := map[netip.AddrPort]Object{}
	for _, svc := range inOrder(in.Services) {
		split, named := b.splits[key(svc)]
		delete(b.splits, key(svc))
		if !named && svc.Labels[Managed] != "true" {
			continue
		}
		s, ok := b.service(svc, taken)
		if named {
			ok = b.settle(svc, split, &s, ok)
		}
		if ok {
			s.Hosts, s.Export, s.Settings = b.hosts(svc, s), b.export(svc), b.settings(svc)
			b.warnOfZones(svc)
			b.fill(svc, split, &s)
			b.withoutForeign(svc, &s)
			mesh.Services = append(mesh.Services, s)
		}
	}
	for _, split := range b.splits {
		b.problems = append(b.problems, NoService(split))
	}
	slices.SortFunc(mesh.Services, func(a, b Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	mesh.Problems = slices.SortedFunc(slices.Values(b.problems), byText)
	return mesh
}

func newBuilder(in Inputs) *builder {
	b := &builder{
		in: in, quarantined: map[traffic.Workload]bool{},
		slices: map[types.NamespacedName][]*discoveryv1.EndpointSlice{},
		pods:   map[string][]Pod{}, workloads: map[[2]string]traffic.Workload{},
		splits: map[types.NamespacedName]traffic.Split{}, served: map[string]Object{}, exports: map[string]Export{},
		nodes: map[types.NamespacedName]map[string]bool{},
	}
	b.readExports()
	for _, s := range in.Slices {
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		b.slices[name] = append(b.slices[name], s)
	}
	for _, p := range in.Pods {
		b.pods[p.Namespace] = append(b.pods[p.Namespace], p)
		b.workloads[[2]string{p.Namespace, p.Name}] = p.Workload
	}
	for _, pods := range b.pods {
		slices.SortFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, w := range in.Quarantined {
		b.quarantined[w] = true
	}
	b.chooseSplits()
	return b
}

// total is the sum of the last sequences of all Services that were ever divided.
func (b *builder) total() (sum uint64) {
	for service := range b.in.Sequences {
		sum += b.storedOf(service)
	}
	for service := range b.splits {
		if _, counted := b.in.Sequences[service]; !counted {
			sum += b.storedOf(service)
		}
	}
	return sum
}

// storedOf is the sequence of a Service, which may not be there, in the store. A split that another one
// for the same Service goes before counts for nothing. An order counts for nothing either: the sum of
// sequences orders what replicas see along one watch, and orders reach each replica by themselves.
func (b *builder) storedOf(service types.NamespacedName) uint64 {
	split := b.splits[service]
	if b.in.Ordered[types.NamespacedName{Namespace: split.Namespace, Name: split.Name}] {
		split.Sequence--
	}
	return max(b.in.Sequences[service], split.Sequence)
}

// inOrder has the oldest first: what was there first keeps an address.
func inOrder(services []*corev1.Service) []*corev1.Service {
	return slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// service is one without its routing and endpoints; false if it cannot be managed.
func (b *builder) service(svc *corev1.Service, taken map[netip.AddrPort]Object) (Service, bool) {
	name := types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
	s := Service{Namespace: svc.Namespace, Name: svc.Name, Sequence: b.in.Sequences[name], LabeledSince: labeledSince(svc)}
	if b.refusedKind(svc) {
		return s, false
	}
	for _, ip := range clusterIPs(svc) {
		if addr, err := netip.ParseAddr(ip); err == nil {
			s.Addresses = append(s.Addresses, addr)
		}
	}
	http := false
	for _, p := range svc.Spec.Ports {
		if !tcp(p.Protocol) {
			continue
		}
		port := Port{Name: p.Name, Number: uint16(p.Port), Protocol: b.protocol(svc, p)} //nolint:gosec // the API server admits 1 to 65535
		http = http || port.Protocol != TCP
		s.Ports = append(s.Ports, port)
	}
	if !http {
		b.refuse(serviceObject(svc), NoHTTPPort, "no port is declared HTTP: set its appProtocol to http, or let its name begin with http")
		return s, false
	}
	slices.SortFunc(s.Ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	return s, b.take(svc, s, taken)
}

func clusterIPs(svc *corev1.Service) []string {
	if len(svc.Spec.ClusterIPs) > 0 {
		return svc.Spec.ClusterIPs
	}
	return []string{svc.Spec.ClusterIP}
}

// take has the service own its addresses, unless an older one does: a proxy has one
// listener for each address.
func (b *builder) take(svc *corev1.Service, s Service, taken map[netip.AddrPort]Object) bool {
	var own []netip.AddrPort
	for _, p := range s.Ports {
		for _, a := range s.Addresses {
			if p.Protocol != TCP {
				own = append(own, netip.AddrPortFrom(a, p.Number))
			}
		}
	}
	for _, a := range own {
		if by, is := taken[a]; is {
			b.refuse(serviceObject(svc), AddressTaken, fmt.Sprintf("%s belongs to the older %s: give one of them another clusterIP or port", a, by))
			return false
		}
	}
	for _, a := range own {
		taken[a] = serviceObject(svc)
	}
	return true
}

// fill gives the ports of a service their slots.
func (b *builder) fill(svc *corev1.Service, split traffic.Split, s *Service) {
	var members map[string][]Pod
	if s.Routing != nil {
		b.warnOfIPv6(*s, split)
		members = serve(split, b.members(svc, split))
	}
	for i := range s.Ports {
		port := &s.Ports[i]
		if port.Protocol == TCP {
			continue
		}
		declared := svc.Spec.Ports[slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
			return tcp(p.Protocol) && p.Port == int32(port.Number)
		})]
		if s.Routing == nil {
			port.Slots = []Slot{{Endpoints: b.fromSlices(svc, declared)}}
			continue
		}
		port.Slots = b.slotsOf(svc, declared, s.Routing.Shares, members)
	}
}

// slotsOf a port of a Service that is divided.
func (b *builder) slotsOf(svc *corev1.Service, port corev1.ServicePort, shares traffic.Shares, members map[string][]Pod) (slots []Slot) {
	for _, share := range shares {
		slots = append(slots, Slot{share.Variation, b.fromPods(svc, port, members[share.Variation])})
	}
	withoutUnready(slots)
	return slots
}

func (b *builder) refuse(o Object, reason Reason, message string) {
	b.problems = append(b.problems, Problem{Object: o, Reason: reason, Message: message, Refused: true})
}

func (b *builder) warn(o Object, reason Reason, message string) {
	b.problems = append(b.problems, Problem{Object: o, Reason: reason, Message: message})
}

// refusals of an object until now, as text.
func (b *builder) refusals(o Object) string {
	reasons := map[string]bool{}
	for _, p := range b.problems {
		if p.Object == o && p.Refused {
			reasons[string(p.Reason)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(reasons)), ", ")
}

func byText(a, b Problem) int { return cmp.Compare(a.String(), b.String()) }

func key(svc *corev1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
}

func serviceObject(svc *corev1.Service) Object { return Object{"Service", svc.Namespace, svc.Name} }
