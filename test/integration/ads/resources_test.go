// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// The smallest resources with which a proxy does what is tested.

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

func resource(kind ads.Type, name string, sequence uint64, m proto.Message, clusters ...string) *ads.Resource {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(pack(m))
	if err != nil {
		panic(err)
	}
	hash := sha256.Sum256(body)
	return &ads.Resource{Type: kind, Name: name, Version: ads.Version{Sequence: sequence, Hash: hex.EncodeToString(hash[:8])}, Body: body, Clusters: clusters}
}

// fromADS is where Envoy gets what has no place in a response of its own.
func fromADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}
}

func cluster(name string) *ads.Resource {
	return resource(ads.Cluster, name, 0, &clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}, ConnectTimeout: durationpb.New(5 * time.Second),
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: fromADS()},
		CircuitBreakers: &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
			MaxConnections: wrapperspb.UInt32(1 << 20), MaxPendingRequests: wrapperspb.UInt32(1 << 20), MaxRequests: wrapperspb.UInt32(1 << 20),
		}}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(&httpv3.HttpProtocolOptions{
			UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_UseDownstreamProtocolConfig{UseDownstreamProtocolConfig: &httpv3.HttpProtocolOptions_UseDownstreamHttpConfig{
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
			}},
		})},
	})
}

func at(address string) *corev3.Address {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		panic(err)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n)},
	}}}
}

func endpoints(name string, addresses ...string) *ads.Resource {
	assignment := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for _, address := range addresses {
		assignment.Endpoints = append(assignment.Endpoints, &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at(address)}},
		}}})
	}
	return resource(ads.Endpoints, name, 0, assignment)
}

func listener(address, routes string) *ads.Resource {
	return resource(ads.Listener, address, 0, listenerOf(address, routes))
}

func listenerOf(address, routes string) *listenerv3.Listener {
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix: "in", UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RouteSpecifier:    &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: fromADS(), RouteConfigName: routes}},
		HttpFilters:       []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})}}},
		StreamIdleTimeout: durationpb.New(0),
	}
	return &listenerv3.Listener{
		Name: address, Address: at(address),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(manager)},
		}}}},
	}
}

// share of a cluster.
type share struct {
	cluster string
	weight  uint32
}

func route(name string, sequence uint64, shares ...share) *ads.Resource {
	weighted := &routev3.WeightedCluster{}
	var names []string
	for _, s := range shares {
		weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: s.cluster, Weight: wrapperspb.UInt32(s.weight)})
		names = append(names, s.cluster)
	}
	return routeOf(name, sequence, &routev3.Route_Route{Route: &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}, Timeout: durationpb.New(0),
	}}, names...)
}

func routeOf(name string, sequence uint64, action *routev3.Route_Route, clusters ...string) *ads.Resource {
	return resource(ads.Route, name, sequence, &routev3.RouteConfiguration{
		Name: name, VirtualHosts: []*routev3.VirtualHost{{Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}, Action: action,
		}}}},
	}, clusters...)
}

// missing stands for what is not there: no endpoints, and a route that answers 503.
func missing(k ads.Key) *ads.Resource {
	switch k.Type {
	case ads.Endpoints:
		return endpoints(k.Name)
	case ads.Route:
		return resource(ads.Route, k.Name, 0, &routev3.RouteConfiguration{Name: k.Name, VirtualHosts: []*routev3.VirtualHost{{
			Name: k.Name, Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
			}},
		}}})
	case ads.Cluster, ads.Listener:
	}
	return nil
}
