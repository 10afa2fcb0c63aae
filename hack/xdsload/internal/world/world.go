// SPDX-License-Identifier: Apache-2.0

// Package world is the mesh that servers are measured with: services in namespaces of
// equal size, and proxies each of which sees those of its own namespace and a few of
// others. Proxies of one namespace see the same, and are a group.
//
// Three services have a split, and what changes of them reaches one proxy, about a
// hundred, and all. The process that serves and the one that loads it compute the same
// world from the same [Shape].
package world

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Shape of a world: how many proxies and services there are, how many of these each
// proxy sees, and how many endpoints each has.
type Shape struct {
	Proxies, Services, Dependencies, Endpoints int
	// Scopes are so many groups that see services of all namespaces, by name; 0 has a group for each
	// namespace instead.
	Scopes int
}

// Validate says what is wrong with a shape.
func (s Shape) Validate() error {
	switch {
	case s.Proxies < 2, s.Endpoints < 1, s.Dependencies < 4:
		return fmt.Errorf("%d proxies, %d dependencies and %d endpoints: want at least 2, 4 and 1", s.Proxies, s.Dependencies, s.Endpoints)
	case s.Services < 2*s.Dependencies, s.Services > 60_000:
		return fmt.Errorf("%d services: want twice the dependencies (%d) to 60,000", s.Services, s.Dependencies)
	case s.Scopes == 1, s.Scopes < 0, s.Scopes > s.Proxies:
		return fmt.Errorf("%d scopes: want 2 to as many as proxies, or none", s.Scopes)
	}
	return nil
}

// Target is a service that changes.
type Target string

// The targets, by how many proxies see them.
const (
	One     Target = "one"
	Hundred Target = "hundred"
	All     Target = "all"
)

// Groups is how many there are.
func (s Shape) Groups() int { return cmp.Or(s.Scopes, s.Services/s.Dependencies) }

// Group of a proxy. The first has one for itself.
func (s Shape) Group(proxy int) int {
	if proxy == 0 {
		return 0
	}
	return 1 + (proxy-1)*(s.Groups()-1)/(s.Proxies-1)
}

// Service that a target is, by index.
func (s Shape) Service(t Target) int {
	switch t {
	case One:
		return 0
	case Hundred:
		return s.Dependencies
	default:
		return s.Dependencies + 1
	}
}

// Sees says whether a group sees a target.
func (s Shape) Sees(group int, t Target) bool {
	switch t {
	case One:
		return group == 0
	case Hundred:
		return group > 0 && group <= s.Group(min(100, s.Proxies-1))
	default:
		return true
	}
}

// Subscribers of a target that keep says yes to.
func (s Shape) Subscribers(t Target, keep func(proxy int) bool) (n int) {
	for p := range s.Proxies {
		if s.Sees(s.Group(p), t) && keep(p) {
			n++
		}
	}
	return n
}

// Seen are the services that a group sees, by index.
func (s Shape) Seen(group int) []int {
	seen := make([]int, 0, s.Dependencies)
	for _, t := range []Target{One, Hundred, All} {
		if s.Sees(group, t) {
			seen = append(seen, s.Service(t))
		}
	}
	for n := group * s.Dependencies; len(seen) < s.Dependencies; n++ {
		if i := n % s.Services; i != s.Service(One) && i != s.Service(Hundred) && i != s.Service(All) {
			seen = append(seen, i)
		}
	}
	return seen
}

// Address of a service.
func (s Shape) Address(service int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 97 + byte(service>>16), byte(service >> 8), byte(service)})
}

// Name of a service.
func (s Shape) Name(service int) (namespace, name string) {
	return fmt.Sprintf("team-%03d", service/s.Dependencies), fmt.Sprintf("service-%02d", service%s.Dependencies)
}

// Port of every service.
const Port = 80

// RouteOf is the route of each listener.
func (s Shape) RouteOf() map[string]string {
	routes := map[string]string{}
	for i := range s.Services {
		namespace, name := s.Name(i)
		routes[netip.AddrPortFrom(s.Address(i), Port).String()] = envoyname.RouteName(namespace, name, Port)
	}
	return routes
}

// Route is the route of a target.
func (s Shape) Route(t Target) string {
	namespace, name := s.Name(s.Service(t))
	return envoyname.RouteName(namespace, name, Port)
}

// Slots are the clusters of a target's two variations.
func (s Shape) Slots(t Target) []string {
	return []string{s.Route(t) + "|stable", s.Route(t) + "|canary"}
}

// Expects is how many resources of each type a group has.
func (s Shape) Expects(group int) [4]int {
	clusters := s.Dependencies
	for _, t := range []Target{One, Hundred, All} {
		if s.Sees(group, t) {
			clusters++ // for the second variation
		}
	}
	return [4]int{clusters, clusters, s.Dependencies, s.Dependencies}
}

// World is what a server serves.
type World struct {
	Shape
	services  []ir.Service
	resources [][]*ads.Resource // by service
}

// New translates all services.
func New(s Shape) (*World, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	w := &World{Shape: s, services: make([]ir.Service, s.Services), resources: make([][]*ads.Resource, s.Services)}
	for i := range w.services {
		namespace, name := s.Name(i)
		w.services[i] = ir.Service{
			Namespace: namespace, Name: name, Addresses: []netip.Addr{s.Address(i)},
			Ports: []ir.Port{{Name: "http", Number: Port, Protocol: ir.HTTP, Slots: []ir.Slot{{Endpoints: s.endpoints(i, 0)}}}},
		}
	}
	for _, t := range []Target{One, Hundred, All} {
		own := &w.services[s.Service(t)]
		own.Ports[0].Slots = []ir.Slot{
			{Variation: "stable", Endpoints: s.endpoints(s.Service(t), 0)}, {Variation: "canary", Endpoints: s.endpoints(s.Service(t), 100)},
		}
		w.weigh(own)
	}
	for i := range w.services {
		if err := w.translate(i); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (s Shape) endpoints(service, from int) []ir.Endpoint {
	endpoints := make([]ir.Endpoint, s.Endpoints)
	for i := range endpoints {
		a := netip.AddrFrom4([4]byte{11 + byte(service>>16), byte(service >> 8), byte(service), byte(from + i)})
		endpoints[i] = ir.Endpoint{Address: netip.AddrPortFrom(a, 8080)}
	}
	return endpoints
}

// weigh takes the next step of a split.
func (*World) weigh(s *ir.Service) {
	s.Sequence++
	canary := traffic.Weight(s.Sequence % 5_000)
	s.Routing = &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total - canary}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}},
		Key:    traffic.Key{Kind: traffic.ByVisitor, Name: "visitor"}, Salt: "s1",
	}
}

// Step is what changes of a target.
type Step string

// The steps.
const (
	// Weight changes the weights of the route, and nothing else.
	Weight Step = "weight"
	// Endpoint replaces an endpoint of the canary.
	Endpoint Step = "endpoint"
)

// Change takes a step. The result is the one resource that changed.
func (w *World) Change(t Target, step Step) (*ads.Resource, error) {
	i := w.Service(t)
	own := &w.services[i]
	kind := ads.Route
	if step == Endpoint {
		kind = ads.Endpoints
		endpoints := own.Ports[0].Slots[1].Endpoints // those of the stable one are in both assignments
		a := endpoints[0].Address
		endpoints[0].Address = netip.AddrPortFrom(a.Addr(), a.Port()^1)
	} else {
		w.weigh(own)
	}
	before := ads.NewView(w.resources[i]...)
	if err := w.translate(i); err != nil {
		return nil, err
	}
	for _, k := range ads.Diff(before, ads.NewView(w.resources[i]...)) {
		if k.Type == kind {
			return ads.NewView(w.resources[i]...).Get(k.Type, k.Name), nil
		}
	}
	return nil, fmt.Errorf("a step of %s changed no %s", step, kind)
}

func (w *World) translate(i int) error {
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{w.services[i]}}, ads.NewView(w.resources[i]...))
	if err != nil {
		return fmt.Errorf("making resources: %w", err)
	}
	w.resources[i] = resources
	return nil
}

// Visible is what a group sees.
func (w *World) Visible(group int) (resources []*ads.Resource) {
	for _, i := range w.Seen(group) {
		resources = append(resources, w.resources[i]...)
	}
	return resources
}
