// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// UpstreamsAnnotation of a pod, or of a namespace for all its pods that have none,
// names Services of other namespaces that its proxies need: namespace/name, separated
// by commas; namespace/* is all of a namespace.
const UpstreamsAnnotation = "plumbline.dev/upstreams"

// all stands for every Service of a namespace.
const all = "*"

// maxUpstreams bounds what one pod may ask for.
const maxUpstreams = 200

// Scope is what a proxy depends on. Equal dependencies are equal Scopes.
type Scope struct {
	// Namespace is empty for gateways, which serve all.
	Namespace string
	// upstreams are sorted, without doubles, and without what the namespace has anyway.
	upstreams string
	face      face
	// local are the ports of an explicit proxy, as its annotation would say them with
	// every namespace named, sorted.
	local string
	// leaving gateways are about to end.
	leaving bool
}

// face of a proxy, which says what listeners it has.
type face int

const (
	// redirected proxies have a listener for each address of a Service.
	redirected face = iota
	// explicit ones have those that they name, on loopback.
	explicit
	// gateway proxies have one, for all hosts.
	gateway
)

// GatewayScope is that of the gateways; those that are about to end have one of their
// own, in which clients are sent away.
func GatewayScope(leaving bool) Scope { return Scope{face: gateway, leaving: leaving} }

// ExplicitScope reads the annotation [inject.AnnotationLocalPorts]. Such a proxy needs
// what its ports lead to, of whatever namespace, and nothing else: it gets requests
// for nothing else. What cannot be read is left out, and returned.
func ExplicitScope(namespace, annotation string) (s Scope, wrong []string) {
	ports, errs := inject.ParseLocalPorts(annotation)
	var local []string
	for _, p := range ports {
		if p.Namespace == "" {
			p.Namespace = namespace
		}
		local = append(local, p.String())
	}
	for _, err := range errs {
		wrong = append(wrong, err.Error())
	}
	return Scope{Namespace: namespace, face: explicit, local: strings.Join(local, ",")}, wrong
}

// ports of an explicit proxy.
func (s Scope) ports() []inject.LocalPort {
	ports, _ := inject.ParseLocalPorts(s.local)
	return ports
}

// ScopeOf reads the annotation. What cannot be read is left out, and returned.
func ScopeOf(namespace, annotation string) (s Scope, wrong []string) {
	var names []string
	for entry := range strings.SplitSeq(annotation, ",") {
		entry = strings.TrimSpace(entry)
		where, name, two := strings.Cut(entry, "/")
		switch {
		case entry == "":
		case !two || where == "" || name == "" || strings.Contains(name, "/") || len(names) == maxUpstreams:
			wrong = append(wrong, entry)
		case where != namespace:
			names = append(names, entry)
		}
	}
	slices.Sort(names)
	return Scope{Namespace: namespace, upstreams: strings.Join(slices.Compact(names), ",")}, wrong
}

// needs says whether a Service is one of them. Of a gateway it is not known here which
// have hosts.
func (s Scope) needs(service types.NamespacedName) bool {
	switch s.face {
	case gateway:
		return true
	case explicit:
		return slices.ContainsFunc(s.ports(), func(p inject.LocalPort) bool {
			return p.Namespace == service.Namespace && p.Service == service.Name
		})
	case redirected:
	}
	if service.Namespace == s.Namespace {
		return true
	}
	for entry := range strings.SplitSeq(s.upstreams, ",") {
		where, name, _ := strings.Cut(entry, "/")
		if where == service.Namespace && (name == all || name == service.Name) {
			return true
		}
	}
	return false
}
