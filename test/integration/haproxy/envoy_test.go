// SPDX-License-Identifier: Apache-2.0

//go:build integration

package haproxy

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// startEnvoy has an Envoy carry a Service out at the address that is returned. Its resources are in the
// bootstrap, so that no discovery server is needed.
func startEnvoy(t testing.TB, s ir.Service) string {
	t.Helper()
	s.Namespace, s.Name = "shop", "web"
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, nil)
	must(t, err)
	route := &routev3.RouteConfiguration{}
	assignments, clusters := map[string]*endpointv3.ClusterLoadAssignment{}, []*clusterv3.Cluster{}
	for _, r := range resources {
		switch r.Type {
		case ads.Route:
			open(t, r.Body, route)
		case ads.Endpoints:
			a := &endpointv3.ClusterLoadAssignment{}
			open(t, r.Body, a)
			assignments[r.Name] = a
		case ads.Cluster:
			c := &clusterv3.Cluster{}
			open(t, r.Body, c)
			clusters = append(clusters, c)
		case ads.Listener:
		}
	}
	for _, c := range clusters {
		c.ClusterDiscoveryType, c.EdsClusterConfig = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}, nil
		c.LoadAssignment = assignments[c.Name]
	}
	address := freeport.Address(t)
	listener := envoyxds.Local(s, s.Ports[0], netip.MustParseAddrPort(address))
	withRoute(t, listener, route)
	config, err := protojson.Marshal(&bootstrapv3.Bootstrap{
		Node: &corev3.Node{Id: "envoy", Cluster: "envoy"},
		Admin: &bootstrapv3.Admin{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{},
		}}}},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: clusters, Listeners: []*listenerv3.Listener{listener}},
	})
	must(t, err)
	envoy.Start(t, envoy.Options{Bootstrap: config})
	poll.Until(t, patience, "Envoy listens", func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return address
}

// withRoute puts a route into a listener that would ask for it.
func withRoute(t testing.TB, l *listenerv3.Listener, route *routev3.RouteConfiguration) {
	t.Helper()
	filter, manager := l.FilterChains[0].Filters[0], &hcmv3.HttpConnectionManager{}
	must(t, filter.GetTypedConfig().UnmarshalTo(manager))
	manager.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: route}
	packed, err := anypb.New(manager)
	must(t, err)
	filter.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
}

// open reads a resource as it is sent.
func open(t testing.TB, body []byte, into proto.Message) {
	t.Helper()
	packed := &anypb.Any{}
	must(t, errors.Join(proto.Unmarshal(body, packed), packed.UnmarshalTo(into)))
}
