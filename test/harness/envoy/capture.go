// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Capture is the listener of a sidecar for redirected connections, at host:port. It needs no rules of
// the kernel: a client names its destination by the PROXY protocol, see [DialCaptured].
func Capture(tb testing.TB, address string) *listenerv3.Listener {
	tb.Helper()
	l := envoyxds.Outbound(netip.MustParseAddrPort(address))
	filter, err := anypb.New(&proxyv3.ProxyProtocol{})
	if err != nil {
		tb.Fatal(err)
	}
	l.ListenerFilters = append(l.ListenerFilters, &listenerv3.ListenerFilter{
		Name: "envoy.filters.listener.proxy_protocol", ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: filter},
	})
	return l
}

// PassThrough are the clusters that [Capture] needs. A connection that passes untouched reaches the
// upstream, as kube-proxy would have it.
func PassThrough(upstream string) []*clusterv3.Cluster {
	clusters := envoyxds.OutboundClusters()
	at := netip.MustParseAddrPort(upstream)
	c := clusters[0]
	c.ClusterDiscoveryType, c.LbPolicy = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, clusterv3.Cluster_ROUND_ROBIN
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.GetName(), Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: at.Addr().String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(at.Port())},
			}}},
		}}}},
	}}}
	return clusters
}

// DialCaptured connects to the listener of [Capture], and names the destination as a kernel would
// that has redirected the connection. Both are host:port.
func DialCaptured(ctx context.Context, listener, destination string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener)
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(destination)
	if err == nil {
		_, err = fmt.Fprintf(c, "PROXY TCP4 127.0.0.1 %s 40000 %d\r\n", at.Addr(), at.Port())
	}
	if err != nil {
		_ = c.Close() // it is of no use
		return nil, fmt.Errorf("naming the destination %s: %w", destination, err)
	}
	return c, nil
}
