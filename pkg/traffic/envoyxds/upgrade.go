// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// upgrades are those that a sidecar passes on. Envoy knows them by name alone, and answers
// others with 403.
func upgrades() []*hcmv3.HttpConnectionManager_UpgradeConfig {
	var all []*hcmv3.HttpConnectionManager_UpgradeConfig
	for _, name := range []string{
		"websocket",
		"SPDY/3.1", // of kubectl exec, and of API servers behind a Service
		"tcp",      // of the Docker API
		"CONNECT",
	} {
		all = append(all, &hcmv3.HttpConnectionManager_UpgradeConfig{UpgradeType: name})
	}
	return all
}

// withoutTLSUpgrade has a request that offers TLS (https://www.rfc-editor.org/rfc/rfc2817) served
// without the upgrade, which RFC 9110 allows each server. Apache HttpClient offers TLS with each
// request over plain text.
func withoutTLSUpgrade(o *corev3.Http1ProtocolOptions) *corev3.Http1ProtocolOptions {
	o.IgnoreHttp_11Upgrade = []*matcherv3.StringMatcher{{
		MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "TLS/"}, IgnoreCase: true,
	}}
	return o
}

// connect is the route of CONNECT requests, which have no path. A Service that takes them is
// a proxy itself, so each request is drawn by itself.
func (r router) connect() *routev3.Route {
	match := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_ConnectMatcher_{ConnectMatcher: &routev3.RouteMatch_ConnectMatcher{}}}
	if r.division != nil {
		return r.divide(match, nil)
	}
	all := r.to(r.cluster("", false))
	all.Match = match
	return all
}
