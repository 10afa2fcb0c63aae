// SPDX-License-Identifier: Apache-2.0

//go:build integration

package signals

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// M1 of the review of the mesh: an Envoy tells of a thousand clusters in several messages, whose order
// and cuts are its own.
func TestAnEnvoyInFrontOfFiveHundredReleasesIsCountedWhole(t *testing.T) {
	rotation.Share(t, 3)
	const releases = 500
	p, c := newPlane(t, 2*time.Second), newClient(t)
	p.gateway = true
	stable, canary := upstream(t, "stable"), upstream(t, "canary")
	var services []ir.Service
	for i := range releases {
		s := split(fmt.Sprintf("s%03d", i), stable, canary)
		s.Hosts = []ir.Host{{Name: s.Name + ".example.com", Port: 80}}
		services = append(services, s)
	}
	address, listener := p.publishEdge(services)
	p.proxy("gateway-0", listener)
	users := p.usersOfEach(c, address, services[0])
	p.askEach(c, address, users, services) // from now on no cluster is new
	p.flushes(1)
	begin, whole, sent := time.Now(), p.flushesOfAll(), p.messages.Load()
	p.flushes(20)
	// A flush under way at the beginning has told of some slots, and is of this count too.
	if flushes, messages := p.flushesOfAll()-whole+1, p.messages.Load()-sent; messages < 2*int64(flushes) {
		t.Errorf("%d messages are of up to %d flushes, want several of each", messages, flushes)
	}
	before := map[string]map[string]signals.Counts{}
	for _, s := range services {
		before[s.Name] = p.totals(s.Name)
	}
	const times = 3
	for range times {
		p.askEach(c, address, users, services)
	}
	want := map[string]uint64{"stable": times, "canary": times}
	for _, s := range services {
		poll.Until(t, patience, s.Name+" is counted whole", func() error {
			got := map[string]uint64{}
			for variation, total := range p.totals(s.Name) {
				got[variation] = total[signals.Completed] - before[s.Name][variation][signals.Completed]
			}
			if d := cmp.Diff(want, got); d != "" {
				return fmt.Errorf("(-want +got):\n%s", d)
			}
			return nil
		})
		if seen := p.counts.Service("shop", s.Name, begin); seen.Gapped != 0 || seen.Variations[0].Uncounted+seen.Variations[1].Uncounted != 0 {
			t.Errorf("%s has gaps: %+v", s.Name, seen)
		}
	}
	if n := p.rejected.Load(); n != 0 {
		t.Errorf("%d times something was not taken", n)
	}
}

// publishEdge publishes services at a gateway, and returns its address and its listener.
func (p *plane) publishEdge(services []ir.Service) (address string, listener *listenerv3.Listener) {
	p.t.Helper()
	mesh, g := ir.Mesh{Services: services}, envoyxds.Gateway{Port: uint16(freeport.For(p.t))} //nolint:gosec // a port
	shared, err := envoyxds.Resources(mesh, nil)
	must(p.t, err)
	own, err := g.Resources(mesh, nil)
	must(p.t, err)
	resources := slices.DeleteFunc(shared, func(r *ads.Resource) bool { return r.Type == ads.Listener || r.Type == ads.Route })
	listener = &listenerv3.Listener{}
	for _, r := range own {
		if r.Type != ads.Listener {
			resources = append(resources, r)
			continue
		}
		packed := &anypb.Any{}
		must(p.t, proto.Unmarshal(r.Body, packed))
		must(p.t, packed.UnmarshalTo(listener))
	}
	p.group.Publish(ads.NewView(resources...))
	return fmt.Sprint("127.0.0.1:", g.Port), listener
}

// usersOfEach waits until a service is served, and returns a user of each of its variations.
func (p *plane) usersOfEach(c *client, address string, s ir.Service) (users []string) {
	p.t.Helper()
	ask := func(user string) (int, string) {
		return c.ask(address, user, request{path: pathOK, host: s.Hosts[0].Name})
	}
	poll.Until(p.t, patience, "the proxy has its routes", func() error {
		if status, _ := ask("u"); status != http.StatusOK {
			return fmt.Errorf("the status is %d", status)
		}
		return nil
	})
	seen := map[string]bool{}
	for i := 0; len(users) < 2; i++ {
		user := fmt.Sprint("user", i)
		if _, by := ask(user); !seen[by] {
			seen[by] = true
			users = append(users, user)
		}
	}
	return users
}

// askEach has users ask each service once.
func (p *plane) askEach(c *client, address string, users []string, services []ir.Service) {
	p.t.Helper()
	var asking errgroup.Group
	asking.SetLimit(8)
	for _, s := range services {
		for _, user := range users {
			asking.Go(func() error {
				if status, by := c.ask(address, user, request{path: pathOK, host: s.Hosts[0].Name}); status != http.StatusOK {
					return fmt.Errorf("%s of %s gets %d by %q", user, s.Name, status, by)
				}
				return nil
			})
		}
	}
	must(p.t, asking.Wait())
}
