// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"net/netip"
	"strconv"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What one client from outside may take, after
// https://www.envoyproxy.io/docs/envoy/latest/configuration/best_practices/edge.
const (
	// edgeBuffer is what is kept of a connection whose other side does not read.
	edgeBuffer = 32 << 10
	// edgeHeadersTime is for all headers of a request: who sends one each minute
	// would have a connection for nothing.
	edgeHeadersTime = 10 * time.Second
	// edgeStreamIdle ends streams of clients that are gone. It is not the five minutes
	// of the page, since a WebSocket or an event stream may be quiet for longer.
	edgeStreamIdle = time.Hour
	edgeHeaders    = 100
	edgeHeadersKiB = 60
	edgeStreams    = 100
	// edgeStreamWindow and edgeConnectionWindow are bytes on the way up, so that an
	// upload over 100 ms comes to 2.5 MB/s; the page's 64 KiB would be a quarter.
	edgeStreamWindow     = 256 << 10
	edgeConnectionWindow = 1 << 20
)

// ours are the headers that proxies make themselves.
const ours = "x-plb-"

func (g Gateway) digest(d *digest) {
	d.add("gateway", strconv.FormatBool(g.IPv6), strconv.Itoa(int(g.Hops)))
	for _, p := range g.Trusted {
		d.add(p.String())
	}
	if g.leaving {
		d.add("leaving")
	}
}

// listener has a chain of filters for those who are trusted, and one for everybody
// else; they differ in nothing but the route.
func (g Gateway) listener() *listenerv3.Listener {
	host := netip.IPv4Unspecified()
	if g.IPv6 {
		host = netip.IPv6Unspecified()
	}
	l := &listenerv3.Listener{
		Name: g.name(false), Address: socket(netip.AddrPortFrom(host, g.Port)),
		TrafficDirection:              corev3.TrafficDirection_INBOUND,
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(edgeBuffer),
	}
	l.GetAddress().GetSocketAddress().Ipv4Compat = g.IPv6
	if len(g.Trusted) > 0 {
		match := &listenerv3.FilterChainMatch{}
		for _, p := range g.Trusted {
			match.DirectSourcePrefixRanges = append(match.DirectSourcePrefixRanges, &corev3.CidrRange{
				AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits())), //nolint:gosec // 0 to 128
			})
		}
		l.FilterChains = append(l.FilterChains, g.chain(true, match))
	}
	l.FilterChains = append(l.FilterChains, g.chain(false, nil))
	return l
}

func (g Gateway) chain(trusted bool, match *listenerv3.FilterChainMatch) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{
		Name: g.name(trusted), FilterChainMatch: match,
		Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(g.http(trusted))},
		}},
	}
}

// http is that of an edge: it says who the client is, gives each request an id of its
// own and takes no orders of Envoy's from anybody. Dot segments are resolved, which
// every browser does; slashes and what is escaped stay, because applications mean
// something by them and nothing here is decided by a path.
func (g Gateway) http(trusted bool) *hcmv3.HttpConnectionManager {
	two := http2()
	two.MaxConcurrentStreams = wrapperspb.UInt32(edgeStreams)
	two.InitialStreamWindowSize = wrapperspb.UInt32(edgeStreamWindow)
	two.InitialConnectionWindowSize = wrapperspb.UInt32(edgeConnectionWindow)
	m := &hcmv3.HttpConnectionManager{
		StatPrefix: "gateway",
		CodecType:  hcmv3.HttpConnectionManager_AUTO,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: g.name(trusted), ConfigSource: overADS(0),
		}},
		HttpProtocolOptions:  withoutTLSUpgrade(http1()),
		Http2ProtocolOptions: two,
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout:     durationpb.New(downstreamIdle),
			MaxHeadersCount: wrapperspb.UInt32(edgeHeaders),
			// Many frameworks take X_A for X-A, so it could stand for one that was removed.
			HeadersWithUnderscoresAction: corev3.HttpProtocolOptions_DROP_HEADER,
		},
		MaxRequestHeadersKb:   wrapperspb.UInt32(edgeHeadersKiB),
		RequestHeadersTimeout: durationpb.New(edgeHeadersTime),
		StreamIdleTimeout:     durationpb.New(edgeStreamIdle),
		UpgradeConfigs:        []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		Proxy_100Continue:     true,

		EarlyHeaderMutationExtensions: []*corev3.TypedExtensionConfig{early(&mutationv3.HeaderMutation{
			Action: &mutationv3.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{
				KeyMatcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: ours}},
			}},
		})},
		UseRemoteAddress:             wrapperspb.Bool(true),
		XffNumTrustedHops:            g.Hops,
		ForwardClientCertDetails:     hcmv3.HttpConnectionManager_SANITIZE,
		GenerateRequestId:            wrapperspb.Bool(true),
		ServerHeaderTransformation:   hcmv3.HttpConnectionManager_PASS_THROUGH,
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 false,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_KEEP_UNCHANGED,
		HttpFilters:                  filters(),
	}
	if g.leaving {
		m.CommonHttpProtocolOptions.MaxRequestsPerConnection = wrapperspb.UInt32(1)
	}
	return m
}
