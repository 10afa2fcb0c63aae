// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/netns"
)

// parts are the resources of a proxy, by what refers to them.
type parts struct {
	clusters  []*clusterv3.Cluster
	endpoints map[string]*endpointv3.ClusterLoadAssignment
	listeners []*listenerv3.Listener
	routes    map[string]*routev3.RouteConfiguration
	// ejections is a file to which the proxy writes which endpoints it leaves out; empty for none.
	ejections string
	// network is that of the proxy; nil for the network of the tests.
	network *netns.Namespace
}

// command is a program that runs in the network of the proxy.
func (p *parts) command(name string, args ...string) *exec.Cmd {
	all := append([]string{name}, args...)
	if p.network != nil {
		all = p.network.Command(name, args...)
	}
	return child.Bind(exec.Command(all[0], all[1:]...)) //nolint:gosec,noctx // its caller ends it
}

// dial connects from the network of the proxy.
func (p *parts) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.network != nil {
		return p.network.Dial(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func newParts() parts {
	return parts{endpoints: map[string]*endpointv3.ClusterLoadAssignment{}, routes: map[string]*routev3.RouteConfiguration{}}
}

func (p *parts) add(t testing.TB, m proto.Message) {
	t.Helper()
	switch m := m.(type) {
	case *clusterv3.Cluster:
		p.clusters = append(p.clusters, m)
	case *endpointv3.ClusterLoadAssignment:
		p.endpoints[m.ClusterName] = m
	case *listenerv3.Listener:
		p.listeners = append(p.listeners, m)
	case *routev3.RouteConfiguration:
		p.routes[m.Name] = m
	default:
		t.Fatalf("a proxy has no %T", m)
	}
}

// ofGolden reads a golden file.
func ofGolden(t *testing.T, path string) parts {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var list []struct {
		Type string
		Body json.RawMessage
	}
	must(t, json.Unmarshal(text, &list))
	p := newParts()
	for _, r := range list {
		m := map[string]proto.Message{
			"Cluster": &clusterv3.Cluster{}, "Endpoints": &endpointv3.ClusterLoadAssignment{},
			"Listener": &listenerv3.Listener{}, "Route": &routev3.RouteConfiguration{},
		}[r.Type]
		must(t, protojson.Unmarshal(r.Body, m))
		p.add(t, m)
	}
	return p
}

// ofResources reads what would be sent.
func ofResources(t testing.TB, resources []*ads.Resource) parts {
	t.Helper()
	p := newParts()
	for _, r := range resources {
		packed := &anypb.Any{}
		must(t, proto.Unmarshal(r.Body, packed))
		m, err := packed.UnmarshalNew()
		must(t, err)
		p.add(t, m)
	}
	return p
}

// bootstrap has everything inline that would come over the discovery service.
func (p *parts) bootstrap(t testing.TB) []byte {
	t.Helper()
	static := &bootstrapv3.Bootstrap_StaticResources{}
	for _, c := range p.clusters {
		if c.GetType() == clusterv3.Cluster_EDS {
			c.EdsClusterConfig = nil
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
			if c.LoadAssignment = p.endpoints[c.Name]; c.LoadAssignment == nil {
				t.Fatalf("cluster %s has no endpoints, not even none", c.Name)
			}
		}
		static.Clusters = append(static.Clusters, c)
	}
	for _, l := range p.listeners {
		for _, chain := range l.FilterChains {
			p.inline(t, chain.Filters[0])
		}
		static.Listeners = append(static.Listeners, l)
	}
	text, err := protojson.Marshal(&bootstrapv3.Bootstrap{StaticResources: static, ClusterManager: &bootstrapv3.ClusterManager{
		OutlierDetection: &bootstrapv3.ClusterManager_OutlierDetection{EventLogPath: p.ejections},
	}})
	must(t, err)
	return text
}

// inline puts a route where it is asked for.
func (p *parts) inline(t testing.TB, filter *listenerv3.Filter) {
	t.Helper()
	manager := &hcmv3.HttpConnectionManager{}
	if !filter.GetTypedConfig().MessageIs(manager) {
		return
	}
	must(t, filter.GetTypedConfig().UnmarshalTo(manager))
	route := p.routes[manager.GetRds().RouteConfigName]
	if route == nil {
		t.Fatalf("there is no route %q", manager.GetRds().RouteConfigName)
	}
	manager.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: route}
	packed, err := anypb.New(manager)
	must(t, err)
	filter.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loopback is an address of the test itself.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
