// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Whatever the mesh, its resources are read as what another proxy needs of the mesh.
func TestTheInverseOfTheTranslation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mesh := drawn(t)
		resources, err := envoyxds.Resources(mesh, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, refused := envoyxds.ReadPorts(ads.NewView(resources...))
		if len(refused) > 0 {
			t.Fatalf("%v is refused: %v", refused[0].Key, refused[0].Err)
		}
		if d := gocmp.Diff(needed(mesh), got, gocmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
			t.Fatalf("ports (-want +got):\n%s", d)
		}
	})
}

// needed is the naive twin of the inverse: a proxy's needs, of the mesh itself.
func needed(mesh ir.Mesh) []envoyxds.Port {
	var ports []envoyxds.Port
	for _, s := range mesh.Services {
		for _, p := range s.Ports {
			if p.Protocol == ir.TCP {
				continue
			}
			port := envoyxds.Port{
				Namespace: s.Namespace, Service: s.Name, Number: p.Number, Sequence: s.Sequence, Protocol: p.Protocol,
				Connect: cmp.Or(s.Settings.ConnectTimeout, time.Second), Idle: cmp.Or(s.Settings.IdleTimeout, time.Second),
				Request: s.Settings.RequestTimeout, RetriesOff: s.Settings.RetriesOff,
			}
			if s.Routing != nil {
				port.Division = &envoyxds.Division{Segments: s.Routing.Shares.Layout(), Forced: forcedBy(*s.Routing)}
				if key := s.Routing.Key; key.Kind != traffic.PerRequest {
					port.Division.Salt = s.Routing.Salt
					port.Division.Key = traffic.Key{Kind: key.Kind, Name: key.Name}
					if key.Kind == traffic.ByVisitor {
						port.Division.Key = key
					}
				}
			}
			for _, slot := range p.Slots {
				arm := envoyxds.Arm{Variation: slot.Variation, Own: answering(slot.Endpoints)}
				if s.Routing != nil && slot.Variation != "v0" {
					arm.Failover = answering(p.Slots[0].Endpoints)
				}
				port.Arms = append(port.Arms, arm)
				if port.Division != nil && len(port.Division.Forced) > 0 {
					port.Arms = append(port.Arms, envoyxds.Arm{Variation: slot.Variation, Forced: true, Own: arm.Own})
				}
			}
			ports = append(ports, port)
		}
	}
	slices.SortFunc(ports, func(a, b envoyxds.Port) int {
		return cmp.Compare(envoyname.RouteName(a.Namespace, a.Service, a.Number), envoyname.RouteName(b.Namespace, b.Service, b.Number))
	})
	return ports
}

func forcedBy(r traffic.Routing) (all []envoyxds.Forced) {
	for _, share := range r.Shares {
		if r.Override != "" {
			all = append(all, envoyxds.Forced{Header: r.Override, Value: share.Variation, Variation: share.Variation})
		}
	}
	for _, value := range slices.Sorted(maps.Keys(r.Match.Values)) {
		all = append(all, envoyxds.Forced{Header: r.Match.Header, Value: value, Variation: r.Match.Values[value]})
	}
	return all
}

// answering are the addresses that may get requests, by locality.
func answering(endpoints []ir.Endpoint) []netip.AddrPort {
	var all []netip.AddrPort
	for _, zone := range []string{"", "z1", "z2"} {
		for _, e := range endpoints {
			ready := slices.ContainsFunc(endpoints, func(e ir.Endpoint) bool { return e.State == ir.Ready })
			if e.Locality.Zone == zone && (e.State == ir.Ready || e.State == ir.Draining && !ready) {
				all = append(all, e.Address)
			}
		}
	}
	return all
}

// The clusters of a split leave after the route of the split.
func TestAClusterThatIsLeftOverIsNoArm(t *testing.T) {
	slot := func(variation, address string) ir.Slot {
		return ir.Slot{Variation: variation, Endpoints: []ir.Endpoint{{Address: netip.MustParseAddrPort(address)}}}
	}
	resources := func(routing *traffic.Routing, slots ...ir.Slot) *ads.View {
		all, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{{
			Namespace: "shop", Name: "web", Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP, Slots: slots}}, Routing: routing,
		}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ads.NewView(all...)
	}
	before := resources(&traffic.Routing{Shares: traffic.Shares{{Variation: "stable"}, {Variation: "canary", Weight: traffic.Total, Reserved: traffic.Total}}},
		slot("stable", "10.1.0.1:80"), slot("canary", "10.1.0.2:80"))
	view := resources(nil, slot("", "10.1.0.1:80"))
	for _, kind := range []ads.Type{ads.Cluster, ads.Endpoints} {
		for _, name := range before.Names(kind) {
			view, _ = view.With(nil, []*ads.Resource{before.Get(kind, name)})
		}
	}
	got, refused := envoyxds.ReadPorts(view)
	if len(refused) > 0 || len(got) != 1 {
		t.Fatalf("the ports are %v, refused are %v", got, refused)
	}
	want := []envoyxds.Arm{{Own: []netip.AddrPort{netip.MustParseAddrPort("10.1.0.1:80")}}}
	if d := gocmp.Diff(want, got[0].Arms, gocmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Errorf("arms (-want +got):\n%s", d)
	}
}

func TestAServiceThatIsGoneIsRead(t *testing.T) {
	name := envoyname.RouteName("shop", "web", 80)
	got, refused := envoyxds.ReadPorts(ads.NewView(envoyxds.Missing(ads.Key{Type: ads.Route, Name: name})))
	want := []envoyxds.Port{{Namespace: "shop", Service: "web", Number: 80, Unavailable: true}}
	if d := gocmp.Diff(want, got); d != "" || len(refused) > 0 {
		t.Errorf("refused %v; ports (-want +got):\n%s", refused, d)
	}
}

// repack changes one resource of a view.
func repack[M proto.Message](t *testing.T, v *ads.View, key ads.Key, message M, change func(M)) *ads.View {
	t.Helper()
	r := *v.Get(key.Type, key.Name)
	packed := &anypb.Any{}
	if err := errors.Join(proto.Unmarshal(r.Body, packed), packed.UnmarshalTo(message)); err != nil {
		t.Fatal(err)
	}
	change(message)
	changed, err := anypb.New(message)
	if err != nil {
		t.Fatal(err)
	}
	if r.Body, err = proto.Marshal(changed); err != nil {
		t.Fatal(err)
	}
	next, _ := v.With(nil, []*ads.Resource{&r})
	return next
}

func TestAnythingElseIsRefusedByName(t *testing.T) {
	const route, cluster = "shop/web|80", "shop/web|80|canary"
	inRoute := func(change func(*routev3.RouteConfiguration)) func(*testing.T, *ads.View) *ads.View {
		return func(t *testing.T, v *ads.View) *ads.View {
			return repack(t, v, ads.Key{Type: ads.Route, Name: route}, &routev3.RouteConfiguration{}, change)
		}
	}
	inCluster := func(change func(*clusterv3.Cluster)) func(*testing.T, *ads.View) *ads.View {
		return func(t *testing.T, v *ads.View) *ads.View {
			return repack(t, v, ads.Key{Type: ads.Cluster, Name: cluster}, &clusterv3.Cluster{}, change)
		}
	}
	inEndpoints := func(change func(*endpointv3.ClusterLoadAssignment)) func(*testing.T, *ads.View) *ads.View {
		return func(t *testing.T, v *ads.View) *ads.View {
			return repack(t, v, ads.Key{Type: ads.Endpoints, Name: cluster}, &endpointv3.ClusterLoadAssignment{}, change)
		}
	}
	weighted := func(c *routev3.RouteConfiguration, i int) *routev3.WeightedCluster {
		routes := c.VirtualHosts[0].Routes
		return routes[len(routes)-i].GetRoute().GetWeightedClusters()
	}
	tests := map[string]struct {
		change func(*testing.T, *ads.View) *ads.View
		key    ads.Key
		want   string
	}{
		"a route with a rewrite of the path": {inRoute(func(c *routev3.RouteConfiguration) {
			c.VirtualHosts[0].Routes[0].GetRoute().PrefixRewrite = "/other"
		}), ads.Key{Type: ads.Route, Name: route}, "route shop/web|80: the field virtual_hosts[0].routes[0].route.prefix_rewrite"},
		"a route for one path": {inRoute(func(c *routev3.RouteConfiguration) {
			c.VirtualHosts[0].Routes[1].Match.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: "/api"}
		}), ads.Key{Type: ads.Route, Name: route}, "virtual_hosts[0].routes[1].match.prefix"},
		"a second virtual host": {inRoute(func(c *routev3.RouteConfiguration) {
			c.VirtualHosts = append(c.VirtualHosts, c.VirtualHosts[0])
		}), ads.Key{Type: ads.Route, Name: route}, "the field name"},
		"a route without virtual host": {inRoute(func(c *routev3.RouteConfiguration) { c.VirtualHosts = nil }), ads.Key{Type: ads.Route, Name: route}, "the field name"},
		"a route under the name of another one": {inRoute(func(c *routev3.RouteConfiguration) {
			c.Name, c.VirtualHosts[0].Name = "shop/other|80", "shop/other|80"
		}), ads.Key{Type: ads.Route, Name: route}, "virtual_hosts[0].routes[0].route.cluster"},
		"weights that differ between two routes": {inRoute(func(c *routev3.RouteConfiguration) {
			weighted(c, 1).Clusters[0].Weight.Value--
		}), ads.Key{Type: ads.Route, Name: route}, "weighted_clusters.clusters[0].weight.value"},
		"weights of another sum": {inRoute(func(c *routev3.RouteConfiguration) {
			for i := range 3 {
				weighted(c, i+1).Clusters[0].Weight.Value--
			}
		}), ads.Key{Type: ads.Route, Name: route}, "the field weight"},
		"a field that this version does not know": {inRoute(func(c *routev3.RouteConfiguration) {
			c.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 5000, protowire.VarintType), 1))
		}), ads.Key{Type: ads.Route, Name: route}, "the field that is unknown"},
		"a cluster with fewer connections": {inCluster(func(c *clusterv3.Cluster) {
			c.CircuitBreakers.Thresholds[0].MaxConnections = wrapperspb.UInt32(1)
		}), ads.Key{Type: ads.Cluster, Name: cluster}, "cluster shop/web|80|canary: the field circuit_breakers.thresholds[0].max_connections.value"},
		"a cluster of another time-out than its neighbor": {inCluster(func(c *clusterv3.Cluster) {
			c.ConnectTimeout = durationpb.New(2 * time.Second)
		}), ads.Key{Type: ads.Cluster, Name: cluster + "|forced"}, "other connections"},
		"a cluster with a certificate of its own": {inCluster(func(c *clusterv3.Cluster) {
			c.TypedExtensionProtocolOptions["x"] = c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
		}), ads.Key{Type: ads.Cluster, Name: cluster}, "typed_extension_protocol_options"},
		"endpoints with weights": {inEndpoints(func(a *endpointv3.ClusterLoadAssignment) {
			a.Endpoints[0].LbEndpoints[0].LoadBalancingWeight = wrapperspb.UInt32(2)
		}), ads.Key{Type: ads.Endpoints, Name: cluster}, "endpoints[0].lb_endpoints[0].load_balancing_weight"},
		"endpoints with a port that is none": {inEndpoints(func(a *endpointv3.ClusterLoadAssignment) {
			socket := a.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress()
			socket.PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: socket.GetPortValue() + 1<<16}
		}), ads.Key{Type: ads.Endpoints, Name: cluster}, "endpoint.address.socket_address.port_value"},
		"endpoints with a name for an address": {inEndpoints(func(a *endpointv3.ClusterLoadAssignment) {
			a.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().Address = "example.com"
		}), ads.Key{Type: ads.Endpoints, Name: cluster}, "example.com"},
		"endpoints of a third priority": {inEndpoints(func(a *endpointv3.ClusterLoadAssignment) {
			a.Endpoints[len(a.Endpoints)-1].Priority = 2
		}), ads.Key{Type: ads.Endpoints, Name: cluster}, "priority"},
		"a cluster that the route names and is not there": {func(_ *testing.T, v *ads.View) *ads.View {
			next, _ := v.With([]ads.Key{{Type: ads.Cluster, Name: cluster}}, nil)
			return next
		}, ads.Key{Type: ads.Route, Name: route}, "names cluster shop/web|80|canary"},
		"a cluster whose endpoints have not come": {func(_ *testing.T, v *ads.View) *ads.View {
			next, _ := v.With([]ads.Key{{Type: ads.Endpoints, Name: cluster}}, nil)
			return next
		}, ads.Key{Type: ads.Endpoints, Name: cluster}, "has no endpoints yet"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			mesh := ir.Mesh{Services: []ir.Service{split(traffic.ByVisitor, "visitor", 1_000, forced)}}
			ports, refused := envoyxds.ReadPorts(tc.change(t, view(t, mesh, nil)))
			if len(ports) != 0 || len(refused) != 1 || refused[0].Key != tc.key || !strings.Contains(refused[0].Err.Error(), tc.want) {
				t.Errorf("read %d ports, refused %v, want %v refused for %q", len(ports), refused, tc.key, tc.want)
			}
		})
	}
}

// The route of gateways has hosts and no port, so another proxy cannot carry the route out.
func TestTheRouteOfGatewaysIsRefused(t *testing.T) {
	for _, r := range gateways()["gateway"].resources(t) {
		if r.Type != ads.Route {
			continue
		}
		ports, refused := envoyxds.ReadPorts(ads.NewView(r))
		if len(ports) != 0 || len(refused) != 1 || refused[0].Key.Name != r.Name {
			t.Errorf("read %v, refused %v", ports, refused)
		}
	}
}

// Whatever bytes come, they are refused, or the resources of a port that is read.
func FuzzReadPorts(f *testing.F) {
	for _, mesh := range sets() {
		resources, err := envoyxds.Resources(mesh, nil)
		if err != nil {
			f.Fatal(err)
		}
		for _, r := range resources {
			if r.Type != ads.Listener {
				f.Add(int(r.Type), r.Body)
			}
		}
	}
	mesh := ir.Mesh{Services: []ir.Service{split(traffic.ByVisitor, "visitor", 1_000, forced)}}
	names := map[int]string{int(ads.Cluster): "shop/web|80|canary", int(ads.Endpoints): "shop/web|80|canary", int(ads.Route): "shop/web|80"}
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		name, known := names[kind]
		if !known {
			t.Skip("of no type that is read")
		}
		v, _ := view(t, mesh, nil).With(nil, []*ads.Resource{{Type: ads.Type(kind), Name: name, Body: body}})
		ports, refused := envoyxds.ReadPorts(v)
		if len(ports)+len(refused) != 1 {
			t.Fatalf("read %v, refused %v", ports, refused)
		}
		for _, p := range ports {
			var sum traffic.Weight
			if p.Division == nil {
				continue
			}
			for _, s := range p.Division.Segments {
				sum += s.Weight
			}
			if sum != traffic.Total {
				t.Fatalf("the segments of %+v are not all keys", p)
			}
		}
	})
}
