// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory keeps the services of the mesh that was built last, so that the next one costs as much as
// has changed. The zero Memory knows none. One goroutine uses it at a time.
type Memory struct {
	services   map[types.NamespacedName]remembered
	next       map[types.NamespacedName]remembered
	localities map[string]Locality
	ipv6       bool
}

// remembered is a service without a split, and the versions of what it was made of.
type remembered struct {
	version string
	slices  []sliceVersion
	service Service
}

// sliceVersion is one version of one EndpointSlice.
type sliceVersion struct{ name, version string }

// Build is [Build]. The slices of services in its result are shared with later ones.
func (m *Memory) Build(in Inputs) Mesh {
	b := newBuilder(in)
	b.memory = m
	if m.ipv6 != in.IPv6 || !maps.Equal(m.localities, in.Localities) {
		m.services, m.localities, m.ipv6 = nil, in.Localities, in.IPv6
	}
	m.next = make(map[types.NamespacedName]remembered, len(m.services))
	mesh := b.build()
	m.services, m.next = m.next, nil
	return mesh
}

// known is a service that is made of the same versions as before. One with a split depends
// on pods, one with quarantined pods on their workloads: these are made anew.
func (b *builder) known(svc *corev1.Service, divided bool) (Service, bool) {
	name := key(svc)
	r, known := b.memory.services[name]
	if !known || divided || r.version != svc.ResourceVersion || b.quarantines[svc.Namespace] || !sameVersions(r.slices, b.slices[name]) {
		return Service{}, false
	}
	b.memory.next[name] = r
	s := r.service
	s.Sequence = b.in.Sequences[name]
	return s, true
}

// remember a service, if all that it is made of has a version.
func (b *builder) remember(svc *corev1.Service, s Service) {
	if svc.ResourceVersion == "" || b.quarantines[svc.Namespace] {
		return
	}
	r := remembered{version: svc.ResourceVersion, service: s}
	for _, slice := range b.slices[key(svc)] {
		if slice.ResourceVersion == "" {
			return
		}
		r.slices = append(r.slices, sliceVersion{slice.Name, slice.ResourceVersion})
	}
	b.memory.next[key(svc)] = r
}

// sameVersions says that slices are those that were remembered, in whatever order.
func sameVersions(before []sliceVersion, now []*discoveryv1.EndpointSlice) bool {
	if len(before) != len(now) {
		return false
	}
	for _, s := range now {
		if !slices.Contains(before, sliceVersion{s.Name, s.ResourceVersion}) {
			return false
		}
	}
	return true
}
