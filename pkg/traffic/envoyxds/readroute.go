// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
)

// readRoute is the inverse of the configuration of [router], and of [unavailable].
func readRoute(body []byte) (r router, isUnavailable bool, err error) {
	c := &routev3.RouteConfiguration{}
	if err := decode(body, c); err != nil {
		return router{}, false, err
	}
	r.name = c.GetName()
	slot, ours := envoyname.ParseSlot(r.name + "|")
	if !ours || len(c.GetVirtualHosts()) != 1 {
		return router{}, false, &ShapeError{Resource: "route " + r.name, Field: "name"}
	}
	r.slot = slot
	host := c.GetVirtualHosts()[0]
	if len(host.GetRoutes()) > 0 && host.GetRoutes()[0].GetDirectResponse() != nil {
		return r, true, sameShape("route "+r.name, unavailable(r.name), c)
	}
	r.settings.RetriesOff = host.GetRetryPolicy() == nil
	r.readRoutes(host.GetRoutes())
	return r, false, sameShape("route "+r.name, r.configuration(), c)
}

// readRoutes reads only what the routes of a division need: the comparison with the routes that are
// made of it finds all else.
func (r *router) readRoutes(routes []*routev3.Route) {
	d := &Division{}
	for len(routes) > 0 {
		action := routes[0].GetRoute()
		r.settings.RequestTimeout = action.GetTimeout().AsDuration()
		to, _ := envoyname.ParseSlot(action.GetCluster())
		if !to.Forced {
			break
		}
		for _, h := range routes[0].GetMatch().GetHeaders() {
			d.Forced = append(d.Forced, Forced{h.GetName(), h.GetStringMatch().GetExact(), to.Variation})
		}
		routes = routes[1:]
	}
	if len(routes) == 0 || routes[0].GetRoute().GetWeightedClusters() == nil {
		return
	}
	for _, w := range routes[0].GetRoute().GetWeightedClusters().GetClusters() {
		to, _ := envoyname.ParseSlot(w.GetName())
		d.Segments = append(d.Segments, traffic.Segment{Variation: to.Variation, Weight: traffic.Weight(w.GetWeight().GetValue())})
	}
	for _, policy := range routes[0].GetRoute().GetHashPolicy() {
		d.Salt, _, _ = strings.Cut(policy.GetHeader().GetRegexRewrite().GetSubstitution(), saltEnd)
		d.Key = readKey(policy.GetHeader().GetHeaderName(), routes)
	}
	r.division = d
}

// readKey reads by what a visitor is known whose header is hashed.
func readKey(header string, routes []*routev3.Route) traffic.Key {
	if header != cookieHeader {
		return traffic.Key{Kind: traffic.ByHeader, Name: header}
	}
	key := traffic.Key{Kind: traffic.ByCookie}
	for _, c := range routes[0].GetMatch().GetCookies() {
		key.Name = c.GetName()
	}
	for _, route := range routes[1:] {
		for _, given := range route.GetResponseHeadersToAdd() {
			key.Kind = traffic.ByVisitor
			_, attributes, _ := strings.Cut(given.GetHeader().GetValue(), visitorAttributes)
			attributes, key.Secure = strings.CutSuffix(attributes, cookieSecure)
			key.Domain, _ = strings.CutPrefix(attributes, cookieDomain)
		}
	}
	return key
}

// whole says whether the segments are all keys, as Envoy's sum of weights must be: the key of a
// visitor is a hash modulo the sum.
func (d *Division) whole() bool {
	if len(d.Segments) > 2*traffic.MaxVariations {
		return false
	}
	var sum traffic.Weight
	for _, s := range d.Segments {
		if s.Weight <= 0 || s.Variation == "" {
			return false
		}
		sum += s.Weight
	}
	return sum == traffic.Total
}
