// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// visitorAge is how long a visitor keeps the cookie, in seconds: thirty days, longer
// than a release takes.
const visitorAge = "2592000"

// cookieHeader has all cookies of a request.
const cookieHeader = "cookie"

// The attributes of the visitor's cookie.
const (
	visitorAttributes = "; Path=/; Max-Age=" + visitorAge + "; HttpOnly; SameSite=Lax"
	cookieDomain      = "; Domain="
	cookieSecure      = "; Secure"
)

// router is what the route of a port is made of.
type router struct {
	name string
	slot envoyname.Slot
	// routing is what the version is made of, and division what the route is.
	routing  *traffic.Routing
	division *Division
	settings ir.Settings
}

func routeOf(s ir.Service, p ir.Port) router {
	return router{envoyname.RouteName(s.Namespace, s.Name, p.Number), slotOf(s, p, ""), s.Routing, divisionOf(s.Routing), s.Settings}
}

func (r router) cluster(variation string, forced bool) string {
	s := r.slot
	s.Variation, s.Forced = variation, forced
	return s.String()
}

func (r router) digest(d *digest) {
	d.add(r.settings.RequestTimeout.String(), strconv.FormatBool(r.settings.RetriesOff))
	if r.routing == nil {
		return
	}
	// Not the shares, but what comes of them.
	for _, s := range r.routing.Shares {
		d.add("variation", s.Variation)
	}
	for _, s := range r.routing.Shares.Layout() {
		d.add("segment", s.Variation)
		d.number(int(s.Weight))
	}
	key := r.routing.Key
	d.add(key.Kind.String(), key.Name, key.Domain, strconv.FormatBool(key.Secure), r.routing.Salt, r.routing.Override, r.routing.Match.Header)
	for _, v := range slices.Sorted(maps.Keys(r.routing.Match.Values)) {
		d.add(v, r.routing.Match.Values[v])
	}
}

// clusters are all that the route names.
func (r router) clusters() []string {
	if r.division == nil {
		return []string{r.cluster("", false)}
	}
	var names []string
	for _, s := range r.division.Segments {
		names = append(names, r.cluster(s.Variation, false))
	}
	for _, f := range r.division.Forced {
		names = append(names, r.cluster(f.Variation, true))
	}
	return distinct(names)
}

func (r router) configuration() *routev3.RouteConfiguration {
	host := r.virtualHost(retryBody, "*")
	host.Routes = append(host.Routes, r.connect())
	return configuration(host)
}

// virtualHost of some domains keeps at most so many bytes of a request's body for a retry.
func (r router) virtualHost(body uint64, domains ...string) *routev3.VirtualHost {
	host := &routev3.VirtualHost{Name: r.name, Domains: domains, Routes: r.routes()}
	if !r.settings.RetriesOff {
		host.RetryPolicy, host.RequestBodyBufferLimit = retries(), wrapperspb.UInt64(body)
	}
	return host
}

// routes are in the order in which Envoy tries them.
func (r router) routes() []*routev3.Route {
	if r.division == nil {
		return []*routev3.Route{r.to(r.cluster("", false))}
	}
	return slices.Concat(r.forced(), r.weighted())
}

// configuration of one virtual host: which service it is, the address has said
// already, and what clients call it does not matter.
func configuration(host *routev3.VirtualHost) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: host.Name, VirtualHosts: []*routev3.VirtualHost{host}}
}

// unavailable answers 503 for a service of which nothing is known.
func unavailable(name string) *routev3.RouteConfiguration {
	return configuration(&routev3.VirtualHost{Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{{
		Match:  everything(),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
	}}})
}

func everything() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

// to sends everything to one cluster.
func (r router) to(cluster string) *routev3.Route {
	return r.route(everything(), &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}})
}

// route has no time limit unless the Service sets one; Envoy's default is 15 seconds. The
// upstream does not see the id that the proxy made.
func (r router) route(match *routev3.RouteMatch, action *routev3.RouteAction) *routev3.Route {
	action.Timeout = durationpb.New(r.settings.RequestTimeout)
	return &routev3.Route{
		Match:                  match,
		Action:                 &routev3.Route_Route{Route: action},
		RequestHeadersToRemove: []string{ir.VisitorHeader},
	}
}

// forced are the routes of requests that a header sends to a variation.
func (r router) forced() []*routev3.Route {
	var routes []*routev3.Route
	for _, f := range r.division.Forced {
		route := r.to(r.cluster(f.Variation, true))
		route.Match.Headers = []*routev3.HeaderMatcher{is(f.Header, f.Value)}
		routes = append(routes, route)
	}
	return routes
}

// weighted are the routes of those who go nowhere by force: first those who are
// known, then the others.
func (r router) weighted() []*routev3.Route {
	key := r.division.Key
	drawn := r.divide(everything(), nil)
	switch key.Kind {
	case traffic.ByHeader:
		known := r.divide(everything(), r.hash(key.Name, "^", ""))
		known.Match.Headers = []*routev3.HeaderMatcher{filled(key.Name)}
		return []*routev3.Route{known, drawn}
	case traffic.ByCookie:
		return []*routev3.Route{r.byCookie(), drawn}
	case traffic.ByVisitor:
		return []*routev3.Route{r.byCookie(), r.byVisitor()}
	default:
		return []*routev3.Route{drawn}
	}
}

// byCookie hashes what the cookie holds.
func (r router) byCookie() *routev3.Route {
	known := r.divide(everything(), r.hash(cookieHeader, cookiePattern(r.division.Key.Name), `\1`))
	known.Match.Cookies = []*routev3.CookieMatcher{{Name: r.division.Key.Name, StringMatch: regex(`\C+`)}}
	return known
}

// byVisitor hashes the id that the proxy made, and gives it away as the cookie: the
// same text with the same salt, so that the next request goes where this one went.
// It takes what the proxy made alone: what a client sends would end up in a header
// of the answer.
func (r router) byVisitor() *routev3.Route {
	fresh := r.divide(everything(), r.hash(ir.VisitorHeader, "^", ""))
	// Removed from the request it would be gone when the answer is written.
	fresh.RequestHeadersToRemove = nil
	fresh.ResponseHeadersToAdd = []*corev3.HeaderValueOption{{
		Header:       &corev3.HeaderValue{Key: "set-cookie", Value: visitorCookie(r.division.Key)},
		AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
	}}
	return fresh
}

// visitorCookie is a format of Envoy's, in which a percent sign stands for a command.
func visitorCookie(k traffic.Key) string {
	return strings.ReplaceAll(k.Name, "%", "%%") + "=%REQ(" + ir.VisitorHeader + ")%" + VisitorAttributes(k)
}

// VisitorAttributes follow name and value in the Set-Cookie header by which a proxy gives a visitor
// the cookie of a key.
func VisitorAttributes(k traffic.Key) string {
	attributes := visitorAttributes
	if k.Domain != "" {
		attributes += cookieDomain + k.Domain
	}
	if k.Secure {
		attributes += cookieSecure
	}
	return attributes
}

// divide lays the shares out over the keys. Without a policy each request is drawn by
// itself; with one that finds no key it would be as well, so only requests come here
// that have one.
func (r router) divide(match *routev3.RouteMatch, policy *routev3.RouteAction_HashPolicy) *routev3.Route {
	weighted := &routev3.WeightedCluster{}
	for _, s := range r.division.Segments {
		weighted.Clusters = append(weighted.Clusters, r.weight(s))
	}
	action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}}
	if policy != nil {
		weighted.RandomValueSpecifier = &routev3.WeightedCluster_UseHashPolicy{UseHashPolicy: wrapperspb.Bool(true)}
		action.HashPolicy = []*routev3.RouteAction_HashPolicy{policy}
	}
	return r.route(match, action)
}

func (r router) weight(s traffic.Segment) *routev3.WeightedCluster_ClusterWeight {
	return &routev3.WeightedCluster_ClusterWeight{
		Name:   r.cluster(s.Variation, false),
		Weight: wrapperspb.UInt32(uint32(s.Weight)), //nolint:gosec // at most traffic.Total
	}
}
