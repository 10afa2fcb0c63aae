// SPDX-License-Identifier: Apache-2.0

package envoyxds_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

func view(t testing.TB, mesh ir.Mesh, before *ads.View) *ads.View {
	t.Helper()
	resources, err := envoyxds.Resources(mesh, before)
	if err != nil {
		t.Fatal(err)
	}
	return ads.NewView(resources...)
}

// What changes when something changes; nothing else is sent to anybody.
func TestOnlyWhatDependsOnItChanges(t *testing.T) {
	was := split(traffic.ByVisitor, "visitor", 1_000, forced)
	with := func(settings ir.Settings) ir.Service {
		s := split(traffic.ByVisitor, "visitor", 1_000, forced)
		s.Settings = settings
		return s
	}
	clusters := []string{"Cluster shop/web|80|canary", "Cluster shop/web|80|canary|forced", "Cluster shop/web|80|stable", "Cluster shop/web|80|stable|forced"}
	tests := map[string]struct {
		is   ir.Service
		want []string
	}{
		"nothing":    {split(traffic.ByVisitor, "visitor", 1_000, forced), nil},
		"a weight":   {split(traffic.ByVisitor, "visitor", 1_001, forced), []string{"Route shop/web|80"}},
		"a salt":     {split(traffic.ByVisitor, "visitor", 1_000, forced, func(r *traffic.Routing) { r.Salt = "s2" }), []string{"Route shop/web|80"}},
		"a key":      {split(traffic.ByHeader, "x-user", 1_000, forced), []string{"Route shop/web|80"}},
		"a mapping":  {split(traffic.ByVisitor, "visitor", 1_000, forced, func(r *traffic.Routing) { r.Match.Values = map[string]string{"x": "canary"} }), []string{"Route shop/web|80"}},
		"a sequence": {func() ir.Service { s := split(traffic.ByVisitor, "visitor", 1_000, forced); s.Sequence++; return s }(), []string{"Route shop/web|80"}},
		"an endpoint, in both clusters of its variation": {func() ir.Service {
			s := split(traffic.ByVisitor, "visitor", 1_000, forced)
			s.Ports[0].Slots[1].Endpoints[0].State = ir.Draining
			return s
		}(), []string{"Endpoints shop/web|80|canary", "Endpoints shop/web|80|canary|forced"}},
		"an address": {func() ir.Service {
			s := split(traffic.ByVisitor, "visitor", 1_000, forced)
			s.Addresses = append(s.Addresses, netip.MustParseAddr("fd00::1"))
			return s
		}(), []string{"Listener [fd00::1]:80"}},
		"a time-out of connections, in all clusters": {with(ir.Settings{IdleTimeout: time.Minute}), clusters},
		"a protocol, in all clusters": {func() ir.Service {
			s := split(traffic.ByVisitor, "visitor", 1_000, forced)
			s.Ports[0].Protocol = ir.HTTP2
			return s
		}(), clusters},
		"a time-out to connect, in all clusters": {with(ir.Settings{ConnectTimeout: time.Minute}), clusters},
		"a time-out of requests":                 {with(ir.Settings{RequestTimeout: time.Minute}), []string{"Route shop/web|80"}},
		"retries":                                {with(ir.Settings{RetriesOff: true}), []string{"Route shop/web|80"}},
		"one more variation, and no other cluster": {func() ir.Service {
			s := split(traffic.ByVisitor, "visitor", 1_000, forced)
			s.Routing.Shares = append(s.Routing.Shares, traffic.Share{Variation: "next"})
			s.Ports[0].Slots = append(s.Ports[0].Slots, slot("next"))
			return s
		}(), []string{
			"Cluster shop/web|80|next", "Cluster shop/web|80|next|forced", "Endpoints shop/web|80|next", "Endpoints shop/web|80|next|forced", "Route shop/web|80",
		}},
		"the whole split, and no listener": {web(nil, slot("", at("10.1.0.1:8080", ir.Ready))), []string{
			"Cluster shop/web|80|", "Cluster shop/web|80|canary", "Cluster shop/web|80|canary|forced", "Cluster shop/web|80|stable", "Cluster shop/web|80|stable|forced",
			"Endpoints shop/web|80|", "Endpoints shop/web|80|canary", "Endpoints shop/web|80|canary|forced", "Endpoints shop/web|80|stable", "Endpoints shop/web|80|stable|forced",
			"Route shop/web|80",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := view(t, ir.Mesh{Services: []ir.Service{was}}, nil)
			after := view(t, ir.Mesh{Services: []ir.Service{tc.is}}, before)
			var got []string
			for _, k := range ads.Diff(before, after) {
				got = append(got, k.Type.String()+" "+k.Name)
			}
			slices.Sort(got)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("what changes (-want +got):\n%s", d)
			}
		})
	}
}

// Whatever the mesh: Envoy's own rules accept each resource, a version tells its
// content, and what a route names is there.
func TestWhateverTheMesh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawn(t), drawn(t)
		a, errA := envoyxds.Resources(first, nil)
		b, errB := envoyxds.Resources(second, nil)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		bodies := map[string][]byte{}
		for _, r := range slices.Concat(a, b) {
			k := fmt.Sprint(r.Type, r.Name, r.Version)
			if body, seen := bodies[k]; seen && !bytes.Equal(body, r.Body) {
				t.Fatalf("%s %s has two bodies with version %s", r.Type, r.Name, r.Version)
			}
			bodies[k] = r.Body
			if parsed, err := ads.ParseVersion(r.Version.String()); err != nil || parsed != r.Version {
				t.Fatalf("version %s reads as %v: %v", r.Version, parsed, err)
			}
		}
		namesAreThere(t, a)
		again, _ := envoyxds.Resources(first, ads.NewView(b...))
		for i, r := range again {
			if r.Version != a[i].Version || !bytes.Equal(r.Body, a[i].Body) {
				t.Fatalf("%s %s depends on what was before", r.Type, r.Name)
			}
		}
	})
}

// namesAreThere checks that a route declares what it names, that it is there, with
// endpoints, and that no listener asks for a route that is not.
func namesAreThere(t *rapid.T, resources []*ads.Resource) {
	v := ads.NewView(resources...)
	for _, r := range resources {
		if slot, ours := envoyname.ParseSlot(r.Name); r.Type == ads.Cluster && (!ours || slot.String() != r.Name || strings.ContainsAny(r.Name, ".:")) {
			t.Fatalf("%s is not the name of a cluster", r.Name)
		}
		if r.Type != ads.Route {
			continue
		}
		if d := cmp.Diff(named(t, opened(t, r).(*routev3.RouteConfiguration)), r.Clusters); d != "" {
			t.Fatalf("route %s names (-want +got):\n%s", r.Name, d)
		}
		for _, c := range r.Clusters {
			if v.Get(ads.Cluster, c) == nil || v.Get(ads.Endpoints, c) == nil {
				t.Fatalf("route %s names %s, which is not there", r.Name, c)
			}
		}
	}
}

// named are all clusters of a route; its weights are always the same whole, on which
// depends where a visitor's key falls.
func named(t *rapid.T, configuration *routev3.RouteConfiguration) []string {
	var names []string
	for _, r := range configuration.VirtualHosts[0].Routes {
		action := r.GetRoute()
		if c := action.GetCluster(); c != "" {
			names = append(names, c)
			continue
		}
		var sum uint32
		for _, c := range action.GetWeightedClusters().Clusters {
			names = append(names, c.Name)
			sum += c.Weight.Value
		}
		if sum != uint32(traffic.Total) {
			t.Fatalf("the weights of %s add up to %d", configuration.Name, sum)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func drawn(t *rapid.T) ir.Mesh {
	mesh := ir.Mesh{}
	for i := range rapid.IntRange(0, 3).Draw(t, "services") {
		s := ir.Service{Namespace: "shop", Name: fmt.Sprint("web", i), Sequence: rapid.Uint64Range(0, 3).Draw(t, "sequence")}
		s.Addresses = []netip.Addr{netip.MustParseAddr(rapid.SampledFrom([]string{"10.0.0.1", "fd00::1"}).Draw(t, "address"))}
		s.Settings = drawnSettings(t)
		variations := []string{""}
		if rapid.Bool().Draw(t, "split") {
			s.Routing = drawnRouting(t)
			variations = nil
			for _, share := range s.Routing.Shares {
				variations = append(variations, share.Variation)
			}
		}
		port := ir.Port{Number: rapid.Uint16Range(1, 65535).Draw(t, "port"), Protocol: rapid.SampledFrom([]ir.Protocol{ir.HTTP, ir.HTTP2}).Draw(t, "protocol")}
		for _, v := range variations {
			port.Slots = append(port.Slots, slot(v, drawnEndpoints(t)...))
		}
		s.Ports = []ir.Port{port, {Number: 5432, Protocol: ir.TCP}}
		mesh.Services = append(mesh.Services, s)
	}
	return mesh
}

// drawnSettings draws what ir.Build lets through.
func drawnSettings(t *rapid.T) ir.Settings {
	timeout := func(name string) time.Duration {
		return rapid.SampledFrom([]time.Duration{0, 100 * time.Millisecond, time.Second, 30 * time.Second}).Draw(t, name)
	}
	return ir.Settings{
		RequestTimeout: timeout("request"), IdleTimeout: timeout("idle"), ConnectTimeout: timeout("connect"), RetriesOff: rapid.Bool().Draw(t, "retries off"),
	}
}

func drawnEndpoints(t *rapid.T) []ir.Endpoint {
	var endpoints []ir.Endpoint
	for i := range rapid.IntRange(0, 4).Draw(t, "endpoints") {
		address := rapid.SampledFrom([]string{"10.1.0.%d:8080", "[fd01::%d]:8080"}).Draw(t, "family")
		state := rapid.SampledFrom([]ir.State{ir.Ready, ir.Draining, ir.Quarantined}).Draw(t, "state")
		zone := rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone")
		endpoints = append(endpoints, at(fmt.Sprintf(address, i), state, "", zone))
	}
	return endpoints
}

// drawnRouting draws what ir.Build lets through.
func drawnRouting(t *rapid.T) *traffic.Routing {
	r := &traffic.Routing{Salt: rapid.StringMatching(`[0-9A-Za-z_-]{1,64}`).Draw(t, "salt")}
	left := traffic.Total
	r.Shares = traffic.Shares{{Variation: "v0", Weight: traffic.Total}}
	for i := range rapid.IntRange(1, 7).Draw(t, "variations") {
		reserved := traffic.Weight(rapid.IntRange(0, int(left)).Draw(t, "reserved"))
		weight := traffic.Weight(rapid.IntRange(0, int(reserved)).Draw(t, "weight"))
		left -= reserved
		r.Shares[0].Weight -= weight
		r.Shares = append(r.Shares, traffic.Share{Variation: fmt.Sprint("v", i+1), Weight: weight, Reserved: reserved})
	}
	r.Key.Kind = traffic.KeyKind(rapid.IntRange(0, 3).Draw(t, "kind"))
	r.Key.Name = rapid.StringMatching("[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}").Draw(t, "key")
	r.Key.Domain = rapid.SampledFrom([]string{"", "example.com"}).Draw(t, "domain")
	r.Key.Secure = rapid.Bool().Draw(t, "secure")
	if rapid.Bool().Draw(t, "overrides") {
		r.Override = rapid.StringMatching("[a-z%-]{1,64}").Draw(t, "override")
	}
	for range rapid.IntRange(0, 3).Draw(t, "values") {
		r.Match.Header = "x-group"
		if r.Match.Values == nil {
			r.Match.Values = map[string]string{}
		}
		r.Match.Values[rapid.StringMatching(`[!-~]{1,256}`).Draw(t, "value")] = rapid.SampledFrom(r.Shares).Draw(t, "to").Variation
	}
	return r
}

// The value of the first cookie of the name, whatever is around it.
func TestTheCookieThatIsHashed(t *testing.T) {
	mesh := ir.Mesh{Services: []ir.Service{split(traffic.ByCookie, "a.b", 1_000)}}
	route := view(t, mesh, nil).Get(ads.Route, "shop/web|80")
	policy := opened(t, route).(*routev3.RouteConfiguration).VirtualHosts[0].Routes[0].GetRoute().HashPolicy[0].GetHeader()
	// Go knows no \C, which is any byte.
	pattern := regexp.MustCompile(strings.ReplaceAll(policy.RegexRewrite.Pattern.Regex, `\C`, `(?s:.)`))
	tests := map[string]struct{ cookies, want string }{
		"alone":                          {"a.b=1", "s1|1"},
		"after another":                  {"x=2; a.b=1", "s1|1"},
		"before another":                 {"a.b=1; x=2", "s1|1"},
		"twice, the first":               {"x=2; a.b=1; a.b=3", "s1|1"},
		"twice, the first of all":        {"a.b=1; a.b=3; x=2", "s1|1"},
		"without a space":                {"x=2;a.b=1;y=3", "s1|1"},
		"not one whose name ends so":     {"xa.b=2; a.b=1", "s1|1"},
		"not one that a dot would match": {"aXb=2; a.b=1", "s1|1"},
		"not one within another's value": {"x=a.b=2; a.b=1", "s1|1"},
		"one with an = in it":            {"a.b=1=2; x=3", "s1|1=2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := pattern.ReplaceAllString(tc.cookies, strings.ReplaceAll(policy.RegexRewrite.Substitution, `\1`, "${1}"))
			if got != tc.want {
				t.Errorf("%q hashes as %q, want %q", tc.cookies, got, tc.want)
			}
		})
	}
}

func TestNothingIsMissingOfClustersAndListeners(t *testing.T) {
	for _, kind := range []ads.Type{ads.Cluster, ads.Listener} {
		if r := envoyxds.Missing(ads.Key{Type: kind, Name: "x"}); r != nil {
			t.Errorf("for a %s there is %v", kind, r)
		}
	}
}

// BenchmarkAWeightOfManyServices is one step of one release while 5,000 services are
// there.
func BenchmarkAWeightOfManyServices(b *testing.B) {
	mesh := ir.Mesh{}
	for i := range 5_000 {
		s := split(traffic.ByVisitor, "visitor", 1_000)
		s.Name = fmt.Sprint("web", i)
		mesh.Services = append(mesh.Services, s)
	}
	before := view(b, mesh, nil)
	for b.Loop() {
		r := *mesh.Services[17].Routing
		r.Shares = traffic.Shares{{Variation: "stable", Weight: 8_000}, {Variation: "canary", Weight: 2_000, Reserved: traffic.Total}}
		mesh.Services[17].Routing = &r
		if _, err := envoyxds.Resources(mesh, before); err != nil {
			b.Fatal(err)
		}
	}
}
