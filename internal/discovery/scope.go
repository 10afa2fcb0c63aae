// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// UpstreamsAnnotation of a pod, or of a namespace for all its pods without the annotation,
// names Services of other namespaces that its proxies need: namespace/name, separated
// by commas; namespace/* is all of a namespace.
const UpstreamsAnnotation = "plumbline.dev/upstreams"

// all stands for every Service of a namespace.
const all = "*"

// maxUpstreams bounds the upstreams of one pod, maxWrong the reported mistakes of one
// annotation, and maxEntry the bytes of each mistake.
const (
	maxUpstreams = 200
	maxWrong     = 10
	maxEntry     = 60
)

// Scope has the dependencies of a proxy. Equal dependencies are equal Scopes.
type Scope struct {
	// Namespace is empty for gateways, which serve all.
	Namespace string
	// upstreams are sorted, without doubles, and without the Services of the namespace.
	upstreams string
	face      face
	// local are the ports of an explicit proxy, as its annotation would say them with
	// every namespace named, sorted.
	local string
	// leaving gateways are about to end.
	leaving bool
}

// face of a proxy, which tells the listeners of the proxy.
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
// the Services behind its ports alone, of any namespace, since it gets requests for
// no other Service. Unreadable entries are left out, and returned.
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

// ScopeOf reads the annotation. Unreadable entries are left out, and returned. After
// ten of them ScopeOf reads no further.
func ScopeOf(namespace, annotation string) (s Scope, wrong []string) {
	var names []string
	for entry := range strings.SplitSeq(annotation, ",") {
		entry = strings.TrimSpace(entry)
		where, name, two := strings.Cut(entry, "/")
		if len(wrong) == maxWrong {
			break
		}
		switch {
		case entry == "":
		case !two || where == "" || name == "" || strings.Contains(name, "/") || len(names) == maxUpstreams:
			wrong = append(wrong, diff.TruncateText(entry, maxEntry))
		case where != namespace:
			names = append(names, entry)
		}
	}
	slices.Sort(names)
	return Scope{Namespace: namespace, upstreams: strings.Join(slices.Compact(names), ",")}, wrong
}

// needs says whether a Service is one of them.
func (s Scope) needs(service types.NamespacedName) bool { return s.reach().has(service) }

// reach has the needs of a scope, for questions about many Services. It does not know the
// Services of a gateway that have hosts.
type reach struct {
	all       bool
	namespace string
	// others are sorted, as they are written in the annotation.
	others []string
}

func (s Scope) reach() reach {
	switch s.face {
	case gateway:
		return reach{all: true}
	case explicit:
		var r reach
		for _, p := range s.ports() {
			r.others = append(r.others, p.Namespace+"/"+p.Service)
		}
		slices.Sort(r.others)
		return r
	case redirected:
	}
	return reach{namespace: s.Namespace, others: strings.Split(s.upstreams, ",")}
}

func (r reach) has(service types.NamespacedName) bool {
	if r.all || service.Namespace == r.namespace {
		return true
	}
	_, whole := slices.BinarySearch(r.others, service.Namespace+"/"+all)
	_, one := slices.BinarySearch(r.others, service.String())
	return whole || one
}
