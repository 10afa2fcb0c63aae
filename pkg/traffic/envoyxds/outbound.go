// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"net/netip"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Names of what is in the bootstrap of every proxy that connections are redirected to.
const (
	passThrough = "passthrough"
	nowhere     = "nowhere"
)

// untouchedConnectTimeout is Envoy's default. There is one address alone to try.
const untouchedConnectTimeout = 5 * time.Second

// Outbound is where redirected connections arrive: it hands each to the listener that
// has its destination as address, and what has none passes untouched to where it was
// going. A pod with two families needs one for each, and [OutboundClusters] once.
func Outbound(at netip.AddrPort) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:             "outbound/" + at.String(),
		Address:          socket(at),
		UseOriginalDst:   wrapperspb.Bool(true),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{
			// Who connects here by name would be passed on to here, for ever. Nor does
			// anybody get to this port of others.
			{FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(uint32(at.Port()))}, Filters: forward(nowhere)},
			{Filters: forward(passThrough)},
		},
	}
}

// OutboundClusters are those that [Outbound] names. They need no endpoints from us.
func OutboundClusters() []*clusterv3.Cluster {
	return []*clusterv3.Cluster{
		{
			Name:                 passThrough,
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
			LbPolicy:             clusterv3.Cluster_CLUSTER_PROVIDED,
			ConnectTimeout:       durationpb.New(untouchedConnectTimeout),
			CircuitBreakers:      wideOpen(),
			// The probes of the application end at the proxy.
			UpstreamConnectionOptions: keepalive(userTimeout),
		},
		{
			Name:                 nowhere,
			ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
			ConnectTimeout:       durationpb.New(untouchedConnectTimeout),
		},
	}
}

// forward passes bytes on, however long none come.
func forward(cluster string) []*listenerv3.Filter {
	return []*listenerv3.Filter{{
		Name: "envoy.filters.network.tcp_proxy",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(&tcpv3.TcpProxy{
			StatPrefix:       cluster,
			ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: cluster},
			IdleTimeout:      durationpb.New(0),
		})},
	}}
}
