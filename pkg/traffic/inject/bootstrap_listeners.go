// SPDX-License-Identifier: Apache-2.0

package inject

import (
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	loopback    = "127.0.0.1"
	readyPath   = "/ready"
	metricsPath = "/metrics"

	adminName  = "admin"
	statusName = "status"
)

// admin is on loopback, where every container of the pod can reach it, so only what
// reads is allowed: a request cannot end the proxy or change it. Envoy knows such a
// list since 1.37.
func admin(c BootstrapConfig) *bootstrapv3.Admin {
	a := &bootstrapv3.Admin{Address: address(loopback, c.AdminPort), IgnoreGlobalConnLimit: c.MaxConnections > 0}
	for _, path := range []string{readyPath, "/server_info", "/memory", "/runtime"} {
		a.AllowPaths = append(a.AllowPaths, exactly(path))
	}
	for _, path := range []string{"/stats", "/clusters", "/listeners", "/config_dump", "/init_dump"} {
		a.AllowPaths = append(a.AllowPaths, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: path}})
	}
	return a
}

func adminCluster(c BootstrapConfig) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 adminName,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment:       endpoint(adminName, loopback, c.AdminPort),
	}
}

// statusListener answers /ready itself, and /metrics with one page of the admin. No
// other page can be reached through it. Envoy accepts connections only when the first
// clusters, listeners and routes have come, so to answer at all is to be ready.
func statusListener(c BootstrapConfig, p *packer) *listenerv3.Listener {
	ready := &healthv3.HealthCheck{
		PassThroughMode: wrapperspb.Bool(false),
		Headers:         []*routev3.HeaderMatcher{header(":path", readyPath)},
	}
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix:     statusName,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: metricsRoute()},
		HttpFilters: []*hcmv3.HttpFilter{
			httpFilter("envoy.filters.http.health_check", p.pack(ready)),
			httpFilter("envoy.filters.http.router", p.pack(&routerv3.Router{})),
		},
		RequestHeadersTimeout: seconds(5),
	}
	host := "0.0.0.0"
	if c.IPv6 {
		host = "::"
	}
	l := &listenerv3.Listener{
		Name: statusName, Address: address(host, c.StatusPort),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: p.pack(manager)},
		}}}},
	}
	l.GetAddress().GetSocketAddress().Ipv4Compat = c.IPv6
	// Whoever takes all connections must not have the proxy killed besides.
	l.IgnoreGlobalConnLimit = c.MaxConnections > 0
	return l
}

func header(name, value string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: exactly(value)}}
}

func metricsRoute() *routev3.RouteConfiguration {
	route := &routev3.Route{
		Match: &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Path{Path: metricsPath},
			Headers:       []*routev3.HeaderMatcher{header(":method", "GET")},
		},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: adminName},
			PrefixRewrite:    "/stats/prometheus",
		}},
	}
	return &routev3.RouteConfiguration{
		Name:         statusName,
		VirtualHosts: []*routev3.VirtualHost{{Name: statusName, Domains: []string{"*"}, Routes: []*routev3.Route{route}}},
	}
}
