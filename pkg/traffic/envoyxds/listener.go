// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"net/netip"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	grpcstatsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// downstreamIdle is how long a connection of a client may have no request.
const downstreamIdle = time.Hour

// address is where a port of a service is.
type address struct {
	netip.AddrPort
	route string
	// host that requests of HTTP/1.0 mean, which name none.
	host string
}

func virtual(a netip.Addr, s ir.Service, p ir.Port) address {
	return address{netip.AddrPortFrom(a, p.Number), envoyname.RouteName(s.Namespace, s.Name, p.Number), s.Name + "." + s.Namespace}
}

func (a address) digest(d *digest) { d.add(a.route, a.host) }

// listener is bound to nothing: the outbound listener hands it the connections whose
// destination it is. It is named by its address, of which Envoy takes no second one
// under another name.
func (a address) listener() *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:             a.String(),
		Address:          socket(a.AddrPort),
		BindToPort:       wrapperspb.Bool(false),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(a.http())},
		}}}},
	}
}

// Local is a listener on a port of the proxy itself, for clients that are told of it
// instead of being redirected. It serves a port of a service.
func Local(s ir.Service, p ir.Port, at netip.AddrPort) *listenerv3.Listener {
	l := local(s, p, at).listener()
	l.BindToPort = nil
	return l
}

func local(s ir.Service, p ir.Port, at netip.AddrPort) address {
	a := virtual(at.Addr(), s, p)
	a.AddrPort = at
	return a
}

// http changes of a request what cannot be left, and nothing of an answer. No address
// counts as internal, which is Envoy's default: so it takes no orders from headers
// of clients, such as to repeat a request, and does not pass them on.
func (a address) http() *hcmv3.HttpConnectionManager {
	downstream := withoutTLSUpgrade(http1())
	downstream.AcceptHttp_10 = true
	downstream.DefaultHostForHttp_10 = a.host
	return &hcmv3.HttpConnectionManager{
		StatPrefix: "outbound",
		CodecType:  hcmv3.HttpConnectionManager_AUTO,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: a.route,
			// Without a time limit: a listener without routes would answer 404, and one
			// that is not there yet lets connections pass.
			ConfigSource: overADS(0),
		}},
		HttpProtocolOptions:  downstream,
		Http2ProtocolOptions: http2(),
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout:     durationpb.New(downstreamIdle),
			MaxHeadersCount: wrapperspb.UInt32(maxHeaders),
		},
		MaxRequestHeadersKb: wrapperspb.UInt32(maxHeadersKiB),
		StreamIdleTimeout:   durationpb.New(0),
		UpgradeConfigs:      upgrades(),
		Proxy_100Continue:   true,

		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{early()},
		UseRemoteAddress:              wrapperspb.Bool(false),
		SkipXffAppend:                 true,
		ForwardClientCertDetails:      hcmv3.HttpConnectionManager_ALWAYS_FORWARD_ONLY,
		GenerateRequestId:             wrapperspb.Bool(false),
		PreserveExternalRequestId:     true,
		ServerHeaderTransformation:    hcmv3.HttpConnectionManager_PASS_THROUGH,
		NormalizePath:                 wrapperspb.Bool(false),
		MergeSlashes:                  false,
		PathWithEscapedSlashesAction:  hcmv3.HttpConnectionManager_KEEP_UNCHANGED,
		HttpFilters:                   filters(),
	}
}

// filters count what gRPC calls come to, which the status of HTTP does not say, and
// send requests on.
func filters() []*hcmv3.HttpFilter {
	return []*hcmv3.HttpFilter{
		{
			Name: "envoy.filters.http.grpc_stats",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&grpcstatsv3.FilterConfig{
				PerMethodStatSpecifier: &grpcstatsv3.FilterConfig_StatsForAllMethods{StatsForAllMethods: wrapperspb.Bool(false)},
			})},
		},
		{
			Name:       "envoy.filters.http.router",
			ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{SuppressEnvoyHeaders: true})},
		},
	}
}

// early happens before a route is sought: later an id would come too late to be
// hashed. What is to be done first is an argument.
func early(mutations ...*mutationv3.HeaderMutation) *corev3.TypedExtensionConfig {
	mutations = append(mutations, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: ir.VisitorHeader, Value: "%UNIQUE_ID%"},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}}})
	return &corev3.TypedExtensionConfig{
		Name:        "envoy.http.early_header_mutation.header_mutation",
		TypedConfig: packed(&earlyv3.HeaderMutation{Mutations: mutations}),
	}
}
