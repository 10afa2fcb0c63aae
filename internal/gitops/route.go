// SPDX-License-Identifier: Apache-2.0

package gitops

import "fmt"

// RouteGroup is the group of the kinds of Gateway API.
const RouteGroup = "gateway.networking.k8s.io"

// RouteName names the route of a release.
type RouteName struct{ Kind, Namespace, Name string }

// String returns the route as findings name objects.
func (r RouteName) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Ownership says which tool applies a route.
type Ownership struct {
	Route RouteName
	Owner Owner
	// Ignored says that the tool leaves the weights alone.
	Ignored bool
	// Unread says why Ignored is not known; empty if it is known.
	Unread string
	// Rule is the YAML for the spec of the owner that has the tool ignore the weights.
	Rule string
}

// Route returns an HTTPRoute or a GRPCRoute, whose weights a router writes at run time. backends counts the backends of
// each rule.
func Route(kind, namespace, name string, backends []int) Object {
	o := Object{
		Group: RouteGroup, Version: "v1", Kind: kind, Namespace: namespace, Name: name, Parent: "/spec/rules",
		path: ".spec.rules[].backendRefs[]?.weight",
	}
	rules := make([]any, len(backends))
	for i, n := range backends {
		refs := make([]any, n)
		for j := range refs {
			refs[j] = map[string]any{"name": "web", "weight": 1}
			o.Fields = append(o.Fields, fmt.Sprintf("%s/%d/backendRefs/%d/weight", o.Parent, i, j))
		}
		rules[i] = map[string]any{"backendRefs": refs}
	}
	o.body = map[string]any{"spec": map[string]any{"rules": rules}}
	return o
}
