// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Memory is the mesh that was built last, in parts, so that the next one costs as much as has
// changed. The zero Memory is the empty mesh. One goroutine uses it at a time.
type Memory struct {
	// parts by namespace and name of the Service.
	parts map[string]map[string]*remembered
	// claims leads from an address or a host to the Services that want it, behind from the
	// address of an endpoint to the Services with hosts that have it, nodes from the name of a
	// node to the Services with endpoints on it.
	claims   index[string]
	behind   index[netip.Addr]
	nodes    index[string]
	sequence uint64
}

// Names of Services, and of namespaces, which have no Name.
type Names map[types.NamespacedName]bool

// Part of a mesh is what was built of one Service; one without a name has the problems of a namespace.
type Part struct {
	// Service is nil if none is managed.
	Service *Service
	// Splits are all that name the Service, carried out or not.
	Splits   []traffic.Split
	Problems []Problem
}

// Change is what differs from the mesh before.
type Change struct {
	// Parts are those that were built anew.
	Parts map[types.NamespacedName]Part
	// Fresh are the problems that were not there before, sorted.
	Fresh []Problem
	// Sequence is that of the whole mesh.
	Sequence uint64
}

// remembered is a part, and what it gives to the whole.
type remembered struct {
	Part
	claims   []string
	behind   []netip.Addr
	nodes    []string
	sequence uint64
}

// index leads to Services.
type index[K comparable] map[K]Names

func (i index[K]) put(keys []K, name types.NamespacedName) {
	for _, k := range keys {
		if i[k] == nil {
			i[k] = Names{}
		}
		i[k][name] = true
	}
}

func (i index[K]) take(keys []K, name types.NamespacedName) {
	for _, k := range keys {
		if delete(i[k], name); len(i[k]) == 0 {
			delete(i, k)
		}
	}
}

// Affected are the Services that have to be built anew with some that have changed: these, and all
// that want an address or a host of one of them, before or now, and so on. in holds the changed ones.
func (m *Memory) Affected(changed Names, in Inputs) Names {
	affected := maps.Clone(changed)
	var open []string
	for name := range changed {
		open = append(open, m.of(name).claims...)
	}
	divided := dividedBy(in.Splits)
	for _, svc := range in.Services {
		open = append(open, claimsOf(svc, divided)...)
	}
	seen := map[string]bool{}
	for len(open) > 0 {
		claim := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[claim] {
			continue
		}
		seen[claim] = true
		for name := range m.claims[claim] {
			if !affected[name] {
				affected[name] = true
				open = append(open, m.of(name).claims...)
			}
		}
	}
	return affected
}

// Rebuild builds some Services anew, and keeps the others. in holds all that is about these Services,
// and nothing about others; names are closed under [Memory.Affected].
func (m *Memory) Rebuild(names Names, in Inputs) Change {
	b := newBuilder(in)
	parts := map[types.NamespacedName]*remembered{}
	for name := range names {
		parts[name] = &remembered{sequence: b.storedOf(name)}
		if space := (types.NamespacedName{Namespace: name.Namespace}); parts[space] == nil {
			parts[space] = &remembered{}
		}
	}
	divided := dividedBy(in.Splits)
	for _, svc := range in.Services {
		if p := parts[key(svc)]; p != nil {
			p.claims = claimsOf(svc, divided)
		}
	}
	owner := map[Object]types.NamespacedName{}
	for _, split := range in.Splits {
		name := types.NamespacedName{Namespace: split.Namespace, Name: split.Service}
		owner[objectOf(split)] = name
		if p := parts[name]; p != nil {
			p.Splits = append(p.Splits, split)
		}
	}
	mesh := b.build()
	for i := range mesh.Services {
		s := &mesh.Services[i]
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		if p := parts[name]; p != nil {
			p.Service, p.nodes = s, slices.Collect(maps.Keys(b.nodes[name]))
			if len(s.Hosts) > 0 {
				p.behind = endpointsBehind(b.slices[name])
			}
		}
	}
	for _, problem := range mesh.Problems {
		if p := parts[partOf(problem.Object, owner)]; p != nil {
			p.Problems = append(p.Problems, problem)
		}
	}
	return m.keep(parts)
}

// partOf says to which part the problems of an object belong.
func partOf(o Object, owner map[Object]types.NamespacedName) types.NamespacedName {
	if name, is := owner[o]; is {
		return name
	}
	if o.Kind == "Namespace" {
		return types.NamespacedName{Namespace: o.Name}
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// keep parts in place of those of the same names.
func (m *Memory) keep(parts map[types.NamespacedName]*remembered) Change {
	if m.parts == nil {
		m.parts = map[string]map[string]*remembered{}
		m.claims, m.behind, m.nodes = index[string]{}, index[netip.Addr]{}, index[string]{}
	}
	change := Change{Parts: make(map[types.NamespacedName]Part, len(parts))}
	for name, p := range parts {
		was := m.of(name)
		m.claims.take(was.claims, name)
		m.behind.take(was.behind, name)
		m.claims.put(p.claims, name)
		m.behind.put(p.behind, name)
		m.nodes.take(was.nodes, name)
		m.nodes.put(p.nodes, name)
		m.sequence += p.sequence - was.sequence
		m.set(name, p)
		change.Parts[name] = p.Part
		for _, problem := range p.Problems {
			if !slices.Contains(was.Problems, problem) {
				change.Fresh = append(change.Fresh, problem)
			}
		}
	}
	slices.SortFunc(change.Fresh, byText)
	change.Sequence = m.sequence
	return change
}

// of a name what is remembered; the zero part if there is nothing.
func (m *Memory) of(name types.NamespacedName) remembered {
	if p := m.parts[name.Namespace][name.Name]; p != nil {
		return *p
	}
	return remembered{}
}

// set what is remembered of a name. Of Services that are not in the mesh there is nothing to remember.
func (m *Memory) set(name types.NamespacedName, p *remembered) {
	of := m.parts[name.Namespace]
	if p.Service == nil && p.sequence == 0 && len(p.Splits)+len(p.Problems)+len(p.claims) == 0 {
		if delete(of, name.Name); len(of) == 0 {
			delete(m.parts, name.Namespace)
		}
		return
	}
	if of == nil {
		of = map[string]*remembered{}
		m.parts[name.Namespace] = of
	}
	of[name.Name] = p
}

// All are the names of all parts.
func (m *Memory) All() Names {
	all := Names{}
	for namespace := range m.parts {
		maps.Copy(all, m.In(namespace))
	}
	return all
}

// In are the names of the parts of a namespace.
func (m *Memory) In(namespace string) Names {
	names := Names{}
	for name := range m.parts[namespace] {
		names[types.NamespacedName{Namespace: namespace, Name: name}] = true
	}
	return names
}

// Divided are the Services of a namespace that a split names.
func (m *Memory) Divided(namespace string) Names {
	names := Names{}
	for name, p := range m.parts[namespace] {
		if len(p.Splits) > 0 {
			names[types.NamespacedName{Namespace: namespace, Name: name}] = true
		}
	}
	return names
}

// Behind are the Services with hosts of which an endpoint has an address.
func (m *Memory) Behind(address netip.Addr) Names { return m.behind[address.Unmap()] }

// On are the Services of which an endpoint is on a node.
func (m *Memory) On(node string) Names { return m.nodes[node] }

// endpointsBehind the hosts of a Service, those included that are left out as another namespace's pods.
func endpointsBehind(slices []*discoveryv1.EndpointSlice) (addresses []netip.Addr) {
	for _, slice := range slices {
		for _, e := range slice.Endpoints {
			for _, text := range e.Addresses {
				if address, err := netip.ParseAddr(text); err == nil {
					addresses = append(addresses, address.Unmap())
				}
			}
		}
	}
	return addresses
}

// dividedBy are the Services that splits name.
func dividedBy(splits []traffic.Split) Names {
	names := make(Names, len(splits))
	for _, s := range splits {
		names[types.NamespacedName{Namespace: s.Namespace, Name: s.Service}] = true
	}
	return names
}

// claimsOf a Service are the addresses and hosts that it may have if no older one has them; none if
// the Service is not in the mesh.
func claimsOf(svc *corev1.Service, divided Names) (claims []string) {
	if svc.Labels[Managed] != "true" && !divided[key(svc)] {
		return nil
	}
	for _, ip := range clusterIPs(svc) {
		if ip != "" && ip != corev1.ClusterIPNone {
			claims = append(claims, ip)
		}
	}
	for text := range wantedHosts(svc) {
		name, _, _ := strings.Cut(text, "=")
		claims = append(claims, name)
	}
	return claims
}
