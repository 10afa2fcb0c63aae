// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"net/netip"
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// served is what gateways serve of a mesh.
type served struct {
	gateway envoyxds.Gateway
	mesh    ir.Mesh
}

func (s served) resources(t testing.TB) []*ads.Resource {
	t.Helper()
	shared, err := envoyxds.Resources(s.mesh, nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := s.gateway.Resources(s.mesh, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.DeleteFunc(shared, func(r *ads.Resource) bool { return r.Type == ads.Listener || r.Type == ads.Route }), own...)
}

// hosted is a split with two hosts.
func hosted(s ir.Service) ir.Service {
	s.Hosts = []ir.Host{{Name: "*.example.org", Port: 80}, {Name: "shop.example.com", Port: 80}}
	return s
}

func plain(name, address, host string) ir.Service {
	s := web(nil, slot("", at(address, ir.Ready)))
	s.Name = name
	if host != "" {
		s.Hosts = []ir.Host{{Name: host, Port: 80}}
	}
	return s
}

// gateways are the features of gateways, each of which has a golden file.
func gateways() map[string]served {
	mesh := ir.Mesh{Sequence: 9, Services: []ir.Service{plain("pay", "10.1.0.3:8080", "pay.example.com"), hosted(split(traffic.ByVisitor, "visitor", 1_000, forced))}}
	return map[string]served{
		"gateway":              {envoyxds.Gateway{Port: 8080}, mesh},
		"gateway without host": {envoyxds.Gateway{Port: 8080}, ir.Mesh{}},
		"gateway for those who are trusted": {envoyxds.Gateway{Port: 8080, IPv6: true, Hops: 1, Trusted: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"),
		}}, mesh},
	}
}

func localPorts(t testing.TB) []*ads.Resource {
	t.Helper()
	s := plain("web", "10.1.0.1:8080", "")
	resources, err := envoyxds.Resources(ir.Mesh{Services: []ir.Service{s}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	resources = slices.DeleteFunc(resources, func(r *ads.Resource) bool { return r.Type == ads.Listener })
	for _, at := range []string{"127.0.0.1:8001", "[::1]:8001"} {
		r, err := envoyxds.LocalListener(s, s.Ports[0], netip.MustParseAddrPort(at), nil)
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, r)
	}
	return resources
}

func gatewayRoute(t rapid.TB, g envoyxds.Gateway, mesh ir.Mesh, name string) *ads.Resource {
	t.Helper()
	resources, err := g.Resources(mesh, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ads.NewView(resources...).Get(ads.Route, name)
}

// A host has the routes of its service, with what somebody from outside may not have
// taken out, and whoever is trusted has them all.
func TestAHostHasTheRoutesOfItsService(t *testing.T) {
	s := hosted(split(traffic.ByVisitor, "visitor", 1_000, forced))
	mesh := ir.Mesh{Services: []ir.Service{s}}
	own := opened(t, view(t, mesh, nil).Get(ads.Route, "shop/web|80")).(*routev3.RouteConfiguration).VirtualHosts[0].Routes
	own = own[:len(own)-1] // a gateway makes no tunnels
	g := envoyxds.Gateway{Port: 8080, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	tests := map[string]struct {
		route string
		want  []*routev3.Route
		strip []string
	}{
		"everybody's, without the overrides": {"gateway|8080", own[2:], []string{"x-variation"}},
		"those of who is trusted":            {"gateway|8080|trusted", own, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := gatewayRoute(t, g, mesh, tc.route)
			host := opened(t, r).(*routev3.RouteConfiguration).VirtualHosts[0]
			if d := cmp.Diff([]string{"*.example.org", "shop.example.com"}, host.Domains); d != "" {
				t.Errorf("the hosts (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.strip, host.RequestHeadersToRemove); d != "" {
				t.Errorf("what is removed (-want +got):\n%s", d)
			}
			if len(host.Routes) != len(tc.want) {
				t.Fatalf("%d routes, want %d", len(host.Routes), len(tc.want))
			}
			for i := range tc.want {
				if host.Routes[i].String() != tc.want[i].String() {
					t.Errorf("route %d is %v, want %v", i, host.Routes[i], tc.want[i])
				}
			}
		})
	}
}

// What changes of a gateway when something of a service does.
func TestOfAGatewayOnlyWhatDependsOnItChanges(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	was := served{envoyxds.Gateway{Port: 8080, Trusted: trusted}, ir.Mesh{Services: []ir.Service{hosted(split(traffic.ByVisitor, "visitor", 1_000, forced))}}}
	with := func(g envoyxds.Gateway, services ...ir.Service) served { return served{g, ir.Mesh{Services: services}} }
	routes := []string{"Route gateway|8080", "Route gateway|8080|trusted"}
	tests := map[string]struct {
		is   served
		want []string
	}{
		"nothing":                          {was, nil},
		"a weight":                         {with(was.gateway, hosted(split(traffic.ByVisitor, "visitor", 1_001, forced))), routes},
		"a decision about another service": {served{was.gateway, ir.Mesh{Services: was.mesh.Services, Sequence: 1}}, routes},
		"the override":                     {with(was.gateway, hosted(split(traffic.ByVisitor, "visitor", 1_000, forced, func(r *traffic.Routing) { r.Override = "x-other" }))), routes},
		"an endpoint": {func() served {
			s := hosted(split(traffic.ByVisitor, "visitor", 1_000, forced))
			s.Ports[0].Slots[1].Endpoints[0].State = ir.Draining
			return with(was.gateway, s)
		}(), []string{"Endpoints shop/web|80|canary", "Endpoints shop/web|80|canary|forced"}},
		"a service without host":   {with(was.gateway, append(slices.Clone(was.mesh.Services), plain("z", "10.1.0.9:80", ""))...), []string{"Cluster shop/z|80|", "Endpoints shop/z|80|"}},
		"who is trusted":           {with(envoyxds.Gateway{Port: 8080, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")}}, was.mesh.Services...), []string{"Listener gateway|8080"}},
		"that nobody is any more":  {with(envoyxds.Gateway{Port: 8080}, was.mesh.Services...), []string{"Listener gateway|8080", "Route gateway|8080|trusted"}},
		"how many proxies precede": {with(envoyxds.Gateway{Port: 8080, Trusted: trusted, Hops: 1}, was.mesh.Services...), []string{"Listener gateway|8080"}},
		"the family":               {with(envoyxds.Gateway{Port: 8080, Trusted: trusted, IPv6: true}, was.mesh.Services...), []string{"Listener gateway|8080"}},
	}
	before := ads.NewView(was.resources(t)...)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, k := range ads.Diff(before, ads.NewView(tc.is.resources(t)...)) {
				got = append(got, k.Type.String()+" "+k.Name)
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("what changes (-want +got):\n%s", d)
			}
		})
	}
}

// Whatever the mesh: Envoy's own rules accept the gateway's resources, a version tells
// its content, and what a route names is there, and is all that it names.
func TestWhateverTheMeshOfAGateway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := envoyxds.Gateway{Port: 8080, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		bodies := map[string]string{}
		for range 2 {
			mesh := drawn(t)
			for i := range mesh.Services {
				s := &mesh.Services[i]
				if rapid.Bool().Draw(t, "has hosts") {
					s.Hosts = []ir.Host{{Name: s.Name + ".example.com", Port: s.Ports[0].Number}}
				}
			}
			shared, err := envoyxds.Resources(mesh, nil)
			if err != nil {
				t.Fatal(err)
			}
			all := ads.NewView(shared...)
			for _, name := range []string{"gateway|8080", "gateway|8080|trusted"} {
				r := gatewayRoute(t, g, mesh, name)
				if body, seen := bodies[name+r.Version.String()]; seen && body != string(r.Body) {
					t.Fatalf("%s has two bodies with version %s", name, r.Version)
				}
				bodies[name+r.Version.String()] = string(r.Body)
				var names []string
				for _, host := range opened(t, r).(*routev3.RouteConfiguration).VirtualHosts {
					names = append(names, named(t, &routev3.RouteConfiguration{Name: host.Name, VirtualHosts: []*routev3.VirtualHost{host}})...)
				}
				slices.Sort(names)
				if d := cmp.Diff(slices.Compact(names), r.Clusters); len(names)+len(r.Clusters) > 0 && d != "" {
					t.Fatalf("%s names (-want +got):\n%s", name, d)
				}
				for _, c := range r.Clusters {
					if all.Get(ads.Cluster, c) == nil {
						t.Fatalf("%s names %s, which is not there", name, c)
					}
				}
			}
		}
	})
}
