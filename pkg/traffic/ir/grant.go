// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Grant gives hosts of the gateways to namespaces.
type Grant struct {
	Namespaces labels.Selector
	// Domains are names as shop.example.com, or *.example.com for all below.
	Domains []string
}

// covers says whether a host, which may be a wildcard, is one of a domain.
func covers(domain, host string) bool {
	if below, wildcard := strings.CutPrefix(domain, "*"); wildcard {
		return len(host) > len(below) && strings.HasSuffix(host, below)
	}
	return host == domain
}

// granted says whether the gateways may serve a host for a namespace. Without grants any
// namespace may have any host.
func (b *builder) granted(namespace, host string) bool {
	for _, g := range b.in.Grants {
		if !g.Namespaces.Matches(labels.Set(b.in.NamespaceLabels[namespace])) {
			continue
		}
		for _, domain := range g.Domains {
			if covers(domain, host) {
				return true
			}
		}
	}
	return len(b.in.Grants) == 0
}

// foreign says whose pod has an address of a Service that gateways serve, if it is the pod of
// another namespace and none of its own. Gateways reach pods that a client does not, and would
// lend the client their place in the network.
func (b *builder) foreign(svc *corev1.Service, address netip.Addr) (owner types.NamespacedName, is bool) {
	for _, pod := range b.in.Owners[address.Unmap()] {
		if pod.Namespace == svc.Namespace {
			return types.NamespacedName{}, false
		}
		owner, is = pod, true
	}
	return owner, is
}

// withoutForeign leaves out of a Service that gateways serve the endpoints of other namespaces.
func (b *builder) withoutForeign(svc *corev1.Service, s *Service) {
	if len(s.Hosts) == 0 || s.Routing != nil {
		return // endpoints of a split are pods of its own namespace
	}
	told := false
	for i := range s.Ports {
		for j := range s.Ports[i].Slots {
			slot := &s.Ports[i].Slots[j]
			var own []Endpoint
			for _, e := range slot.Endpoints {
				pod, is := b.foreign(svc, e.Address.Addr())
				if !is {
					own = append(own, e)
				} else if !told {
					told = true
					b.warn(serviceObject(svc), ForeignEndpoint, fmt.Sprintf("its endpoint %s is pod %s of another namespace, which a Service of gateways cannot have: take it out of its EndpointSlices, or remove the annotation %s", e.Address.Addr(), pod, HostsAnnotation))
				}
			}
			slot.Endpoints = own
		}
	}
}
