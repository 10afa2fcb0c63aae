// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
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
	Namespace string
	// upstreams are sorted, without doubles, and without what the namespace has anyway.
	upstreams string
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
	return Scope{namespace, strings.Join(slices.Compact(names), ",")}, wrong
}

// needs says whether a Service is one of them.
func (s Scope) needs(service types.NamespacedName) bool {
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
