// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// scopesOfAllFaces, some of which need the same services.
func scopesOfAllFaces() []Scope {
	scopes := []Scope{GatewayScope(false), GatewayScope(true)}
	for _, upstreams := range []string{"", "bank/web0", "bank/*", "bank/*,bank/web1", "none/web0"} {
		s, _ := ScopeOf("shop", upstreams)
		scopes = append(scopes, s)
	}
	for _, ports := range []string{"", "8001=web0", "8001=web0,8002=bank/web1:80,8003=none"} {
		s, _ := ExplicitScope("shop", ports)
		scopes = append(scopes, s)
	}
	return scopes
}

// drawMesh has services that take addresses, hosts and endpoints from each other.
func drawMesh(t *rapid.T) (mesh ir.Mesh) {
	taken := map[int]bool{}
	for _, namespace := range []string{"bank", "shop"} {
		for i := range 2 {
			address := rapid.IntRange(1, 5).Draw(t, "address")
			if taken[address] || rapid.IntRange(0, 3).Draw(t, "away") == 0 {
				continue
			}
			taken[address] = true
			s := serviceOf(namespace, fmt.Sprint("web", i), fmt.Sprintf("10.1.0.%d:80", rapid.IntRange(1, 2).Draw(t, "endpoint")), byte(address)) //nolint:gosec // at most 5
			if rapid.Bool().Draw(t, "hosted") {
				s = hosted(s, fmt.Sprintf("%s%d.example.com", namespace, i))
			}
			s.Export.All = rapid.Bool().Draw(t, "exported")
			s.Sequence = rapid.Uint64Range(0, 2).Draw(t, "sequence of the service")
			if rapid.Bool().Draw(t, "two addresses") {
				s.Addresses = append(s.Addresses, netip.AddrFrom4([4]byte{10, 0, 1, byte(address)})) //nolint:gosec // at most 5
			}
			mesh.Services = append(mesh.Services, s)
			mesh.Sequence = rapid.Uint64Range(0, 1).Draw(t, "sequence")
		}
	}
	return mesh
}

// newestOf a catalog are the versions of all routes that somebody has decided about.
func newestOf(c *Catalog) map[string]ads.Version {
	newest := map[string]ads.Version{}
	all := slices.Clone(c.edge)
	for _, e := range c.services {
		all = append(all, e.resources...)
	}
	for _, r := range all {
		if r.Type == ads.Route && r.Version.Sequence > 0 {
			newest[r.Name] = r.Version
		}
	}
	return newest
}

// M5 of the review of the mesh: the views of groups after many looks are those of a catalog
// that is made anew.
func TestViewsThatFollowTheirServicesAreThoseThatWouldBeMade(t *testing.T) {
	faces := Faces{Gateway: &envoyxds.Gateway{Port: 8080}}
	rapid.Check(t, func(t *rapid.T) {
		c := NewCatalog(serve.NewProofs()).WithFaces(faces)
		joined := map[Scope]*serve.Group{}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for _, s := range scopesOfAllFaces() {
				switch in := joined[s] != nil; {
				case !in && rapid.Bool().Draw(t, "joins"):
					joined[s] = c.Join(s)
				case in && rapid.IntRange(0, 5).Draw(t, "leaves") == 0:
					c.Leave(s)
					delete(joined, s)
				}
			}
			mesh := drawMesh(t)
			twin := NewCatalog(serve.NewProofs()).WithFaces(faces)
			for _, each := range []*Catalog{c, twin} {
				if _, err := each.Publish(wholly(each, mesh), begin); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(newestOf(c), c.Newest()); d != "" {
				t.Fatalf("the newest routes (-want +got):\n%s", d)
			}
			for s, group := range joined {
				want := twin.Join(s).View()
				if d := ads.Diff(want, group.View()); len(d) > 0 {
					t.Fatalf("%+v: %v differ", s, d)
				}
				for kind := ads.Cluster; kind <= ads.Route; kind++ {
					if got := group.View().Names(kind); fmt.Sprint(got) != fmt.Sprint(want.Names(kind)) {
						t.Fatalf("%+v: the names are %v, want %v", s, got, want.Names(kind))
					}
				}
				if got, want := c.Unserved(s), twin.Unserved(s); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%+v: it cannot have %v, want %v", s, got, want)
				}
			}
		}
		for s := range joined {
			c.Leave(s)
		}
		if n := len(c.needs.all) + len(c.needs.whole) + len(c.needs.one) + len(c.groups); n > 0 {
			t.Fatalf("%d groups are left behind", n)
		}
	})
}

// Streams begin and end while looks are published; a stream that stays sees the last one.
func TestStreamsThatBeginDuringLooksSeeTheLast(t *testing.T) {
	c := NewCatalog(serve.NewProofs()).WithFaces(Faces{Gateway: &envoyxds.Gateway{Port: 8080}})
	scopes := scopesOfAllFaces()
	stop := make(chan struct{})
	var streams sync.WaitGroup
	joined := make([]*serve.Group, len(scopes))
	for i, s := range scopes {
		streams.Go(func() {
			for {
				joined[i] = c.Join(s)
				select {
				case <-stop:
					return
				default:
					c.Unserved(s)
					c.Leave(s)
				}
			}
		})
	}
	for n := range byte(200) {
		web, pay := serviceOf("shop", "web0", fmt.Sprintf("10.1.0.%d:80", n), 1), hosted(serviceOf("bank", "web1", fmt.Sprintf("10.1.1.%d:80", n), 2), "a.example.com")
		if n%3 == 0 {
			pay.Addresses = nil
		}
		publish(t, c, begin, web, pay)
	}
	close(stop)
	streams.Wait()
	for i, s := range scopes {
		if d := ads.Diff(sees(c, s), joined[i].View()); len(d) > 0 {
			t.Errorf("%+v: %v differ", s, d)
		}
	}
}
