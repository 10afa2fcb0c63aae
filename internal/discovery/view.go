// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// LocalPortLeadsNowhere is the reason of a local port that has no listener.
const LocalPortLeadsNowhere ir.Reason = "LocalPortLeadsNowhere"

// view of a scope, and what of it cannot be had; nil before the first look. What was
// in the view before is not made again.
func (c *Catalog) view(s Scope, before *ads.View) (*ads.View, []ir.Problem) {
	if c.services == nil {
		return nil, nil
	}
	var resources []*ads.Resource
	var problems []ir.Problem
	switch s.face {
	case redirected:
		c.each(s.reach(), func(_ types.NamespacedName, e *entry) { resources = append(resources, e.seenBy(s)...) })
		problems = notExported(s, c.hidden(s))
	case explicit:
		for _, p := range s.ports() {
			of, problem := c.local(s.Namespace, p, before)
			resources = append(resources, of...)
			if problem != nil {
				problem.Message = fmt.Sprintf("pods of namespace %s have no proxy at their local port %d, which the annotation %s has lead here: %s",
					s.Namespace, p.At, inject.AnnotationLocalPorts, problem.Message)
				problems = append(problems, *problem)
			}
		}
	case gateway:
		resources = c.front(s.leaving, before)
		for _, e := range c.hosted {
			resources = append(resources, e.seenBy(s)...)
		}
	}
	return ads.NewView(resources...), problems
}

// front are the gateways' own resources; those of one that leaves have another listener.
func (c *Catalog) front(leaving bool, before *ads.View) []*ads.Resource {
	if !leaving || c.faces.Gateway == nil {
		return slices.Clone(c.edge)
	}
	r, err := c.faces.Gateway.Leaving(before)
	if err != nil { // the one of all others would not have been made either
		return slices.Clone(c.edge)
	}
	return append(without(c.edge, ads.Listener), r)
}

// local is what a local port needs. Without a Service there is no listener: that
// nobody listens is what a client understands at once.
func (c *Catalog) local(namespace string, p inject.LocalPort, before *ads.View) ([]*ads.Resource, *ir.Problem) {
	problem := &ir.Problem{Object: ir.Object{Kind: "Service", Namespace: p.Namespace, Name: p.Service}, Port: p.Port, Reason: LocalPortLeadsNowhere}
	e := c.services[types.NamespacedName{Namespace: p.Namespace, Name: p.Service}]
	if e == nil {
		problem.Message = fmt.Sprintf("there is no managed Service of that name: create it, or give it the label %s=true", ir.Managed)
		return nil, problem
	}
	if !e.service.KnownTo(namespace) {
		problem.Reason, problem.Message = NotExported, consentText(namespace, p.Namespace)
		return nil, problem
	}
	port, err := e.service.HTTPPort(p.Port)
	if err != nil {
		problem.Message = err.Error()
		return nil, problem
	}
	resources := without(e.resources, ads.Listener)
	for _, at := range c.loopback() {
		r, err := envoyxds.LocalListener(e.service, port, netip.AddrPortFrom(at, p.At), before)
		if err != nil {
			problem.Message = err.Error()
			return nil, problem
		}
		resources = append(resources, r)
	}
	return resources, nil
}

func (c *Catalog) loopback() []netip.Addr {
	addresses := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	if c.faces.IPv6 {
		addresses = append(addresses, netip.IPv6Loopback())
	}
	return addresses
}

// without resources of some types.
func without(resources []*ads.Resource, kinds ...ads.Type) (left []*ads.Resource) {
	for _, r := range resources {
		if !slices.Contains(kinds, r.Type) {
			left = append(left, r)
		}
	}
	return left
}

// Unserved says what of a scope that somebody is in cannot be had.
func (c *Catalog) Unserved(s Scope) []ir.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.groups[s]; m != nil {
		return slices.Clone(m.problems)
	}
	return nil
}

// Problems of all scopes that somebody is in, sorted.
func (c *Catalog) Problems() (problems []ir.Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.groups {
		problems = append(problems, m.problems...)
	}
	slices.SortFunc(problems, func(a, b ir.Problem) int { return cmp.Compare(a.String(), b.String()) })
	return problems
}
