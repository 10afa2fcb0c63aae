// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Gateway is where the gateways of an installation take requests from outside, and
// from whom they take orders.
type Gateway struct {
	// Port, on every address; of both families with IPv6.
	Port uint16
	IPv6 bool
	// Trusted are the clients that may choose a variation by its override header. It is
	// the address that connects which counts, never one that a header names.
	Trusted []netip.Prefix
	// Hops are proxies before the gateway that say truly, in x-forwarded-for, who the
	// client is, and in x-forwarded-proto how it came.
	Hops uint32

	leaving bool
}

// Resources are the listener and the routes of the gateways. The clusters that these
// name, and their endpoints, are those of [Resources] for the same mesh.
func (g Gateway) Resources(mesh ir.Mesh, before *ads.View) ([]*ads.Resource, error) {
	t := translation{before: before}
	t.add(ads.Listener, g.name(false), g.digest, func() message { return g.listener() })
	g.route(&t, mesh, false)
	if len(g.Trusted) > 0 {
		g.route(&t, mesh, true)
	}
	return t.resources, errors.Join(t.errs...)
}

// Leaving is the listener of a gateway that is about to end. It answers as before and
// closes each connection with the next answer; that the listener changes has those
// that are there closed as well.
func (g Gateway) Leaving(before *ads.View) (*ads.Resource, error) {
	g.leaving = true
	t := translation{before: before}
	t.add(ads.Listener, g.name(false), g.digest, func() message { return g.listener() })
	if len(t.errs) > 0 {
		return nil, errors.Join(t.errs...)
	}
	return t.resources[0], nil
}

// name of the listener, and of its route.
func (g Gateway) name(trusted bool) string {
	name := "gateway|" + strconv.Itoa(int(g.Port))
	if trusted {
		name += "|trusted"
	}
	return name
}

// route of all hosts. Any decision about any service makes its sequence greater,
// whether the service has a host or not: what a host leads to may change with it.
func (g Gateway) route(t *translation, mesh ir.Mesh, trusted bool) {
	name := g.name(trusted)
	d, clusters := digestOf(ads.Route, name), []string{}
	hosts := sites(mesh, trusted)
	for _, s := range hosts {
		d.add(s.hash())
		clusters = append(clusters, s.router.clusters()...)
	}
	t.keep(&ads.Resource{Type: ads.Route, Name: name, Version: d.version(mesh.Sequence), Clusters: distinct(clusters)}, func() message {
		// A client may name the port in its Host header.
		c := &routev3.RouteConfiguration{Name: name, IgnorePortInHostMatching: true}
		for _, s := range hosts {
			c.VirtualHosts = append(c.VirtualHosts, s.virtualHost())
		}
		return c
	})
}

// site is a port of a service under its hosts.
type site struct {
	router router
	hosts  []string
	// strip are headers that would choose a variation, here or of a service that is
	// asked next and gets them passed on.
	strip []string
}

// sites are sorted by their name. A host that is not there is answered with 404.
func sites(mesh ir.Mesh, trusted bool) []site {
	overrides := map[string][]string{}
	for _, s := range mesh.Services {
		if s.Routing != nil && s.Routing.Override != "" && !trusted {
			overrides[s.Namespace] = append(overrides[s.Namespace], s.Routing.Override)
		}
	}
	var all []site
	for _, s := range mesh.Services {
		for _, p := range s.Ports {
			at := site{router: routeOf(s, p), strip: distinct(overrides[s.Namespace])}
			for _, h := range s.Hosts {
				if h.Port == p.Number {
					at.hosts = append(at.hosts, h.Name)
				}
			}
			if len(at.hosts) == 0 || p.Protocol == ir.TCP {
				continue
			}
			if !trusted {
				at.router = at.router.withoutOverride()
			}
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b site) int { return cmp.Compare(a.router.name, b.router.name) })
	return all
}

// withoutOverride takes no orders.
func (r router) withoutOverride() router {
	if r.routing != nil {
		routing := *r.routing
		routing.Override = ""
		r.routing, r.division = &routing, divisionOf(&routing)
	}
	return r
}

func (s site) hash() string {
	d := digestOf(ads.Route, s.router.name)
	d.number(len(s.hosts))
	d.add(s.hosts...)
	d.number(len(s.strip))
	d.add(s.strip...)
	s.router.digest(d)
	return d.version(0).Hash
}

func (s site) virtualHost() *routev3.VirtualHost {
	host := s.router.virtualHost(edgeRetryBody, s.hosts...)
	host.RequestHeadersToRemove = s.strip
	return host
}
