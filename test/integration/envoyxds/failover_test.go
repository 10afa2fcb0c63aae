// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// halves divides all requests between a stable and a canary variation with these upstreams.
func halves(stable, canary []*backend.Mortal) ir.Service {
	endpoints := func(of []*backend.Mortal) (all []ir.Endpoint) {
		for _, m := range of {
			all = append(all, endpoint(m.Address, ir.Ready))
		}
		return all
	}
	r := &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: traffic.Total / 2}, {Variation: "canary", Weight: traffic.Total / 2, Reserved: traffic.Total}},
		Key:    traffic.Key{Kind: traffic.PerRequest}, Salt: "s1", Override: "x-variation",
		Match: traffic.Match{Header: "x-group", Values: map[string]string{"beta": "canary"}},
	}
	return web(r, slot("stable", endpoints(stable)...), slot("canary", endpoints(canary)...))
}

// mortal is an upstream that answers with its name.
func mortal(t testing.TB, name string) *backend.Mortal {
	t.Helper()
	return backend.NewMortal(t, answerAs(name))
}

// served fails unless the answers come from these alone, in equal parts for each of the lists.
func served(t *testing.T, when string, by map[string]int, halves ...[]string) {
	t.Helper()
	all, sums := 0, make([]int, len(halves))
	for name, n := range by {
		at := slices.IndexFunc(halves, func(names []string) bool { return slices.Contains(names, name) })
		if at < 0 {
			t.Errorf("%s: %d answers are from %q", when, n, name)
			continue
		}
		all, sums[at] = all+n, sums[at]+n
	}
	for i, n := range sums {
		within(t, fmt.Sprint(when, ": ", halves[i]), n, all, 1/float64(len(halves)))
	}
}

// eventuallyServed waits until the last answers come from all of these, and from no other.
func eventuallyServed(t *testing.T, l *load, names ...string) {
	t.Helper()
	poll.Until(t, patience, fmt.Sprint("the answers come from ", names), func() error {
		by := l.look(60)
		for _, name := range names {
			if by[name] == 0 {
				return fmt.Errorf("they come from %v", by)
			}
		}
		if len(by) != len(names) {
			return fmt.Errorf("they come from %v", by)
		}
		return nil
	})
}

// There is no discovery server at all: endpoints end and come back, and the proxy is told of
// none of it. A sidecar and a gateway have the same clusters.
func TestAProxyWithoutAServerLosesNoRequest(t *testing.T) {
	a, b := mortal(t, "a"), mortal(t, "b")
	c, d := mortal(t, "c"), mortal(t, "d")
	local, edge := serveBoth(t, halves([]*backend.Mortal{a, b}, []*backend.Mortal{c, d}))
	all := loads{"sidecar": startLoad(t, local, ""), "gateway": startLoad(t, edge, "a.example.com")}
	all.served(t, "all are there", []string{"a", "b"}, []string{"c", "d"})

	all.end(c)
	all.eventuallyServed(t, "a", "b", "d")
	all.served(t, "one of the canary's endpoints is gone", []string{"a", "b"}, []string{"d"})

	all.end(d)
	all.eventuallyServed(t, "a", "b")
	for _, l := range all {
		for _, forced := range [][]string{{"X-Variation", "canary"}, {"X-Group", "beta"}} {
			if got := askFor(t, client(t, false), l.address, l.host, forced...); got.status != http.StatusServiceUnavailable {
				t.Errorf("a request that is forced by %s to the canary of %s gets %d from %q", forced, l.address, got.status, got.header.Get("Variation"))
			}
		}
	}

	all.end(a)
	all.eventuallyServed(t, "b")

	c.Start()
	a.Start()
	all.eventuallyServed(t, "a", "b", "c")
	all.served(t, "the canary is back", []string{"a", "b"}, []string{"c"})
}

// loads of several proxies, by their names.
type loads map[string]*load

// end an upstream while no WebSocket is opened: each takes a connection of its own, and the kernel
// resets those that an application has not accepted when it ends, with what was written on them.
func (all loads) end(m *backend.Mortal) {
	for _, l := range all {
		l.upgrades.Lock()
		defer l.upgrades.Unlock()
	}
	m.End()
}

// served is as that of each load, and fails the test if a request has failed.
func (all loads) served(t *testing.T, when string, halves ...[]string) {
	t.Helper()
	for name, l := range all {
		served(t, name+": "+when, l.look(600), halves...)
		l.noneFailed(name + ": " + when)
	}
}

// eventuallyServed is as that of each load.
func (all loads) eventuallyServed(t *testing.T, names ...string) {
	t.Helper()
	for name, l := range all {
		eventuallyServed(t, l, names...)
		l.noneFailed(fmt.Sprint(name, " until the answers come from ", names))
	}
}

// serveBoth has an Envoy serve a service as a sidecar does, and as a.example.com, as a gateway
// does for clients who may force a variation.
func serveBoth(t *testing.T, s ir.Service) (local, edge string) {
	t.Helper()
	s.Hosts = []ir.Host{{Name: "a.example.com", Port: 80}}
	p, addresses := arranged(t, s)
	s.Namespace, s.Name = "shop", "web0"
	port := freeport.For(t)
	g := envoyxds.Gateway{Port: uint16(port), Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}} //nolint:gosec // a port
	resources, err := g.Resources(ir.Mesh{Services: []ir.Service{s}}, nil)
	must(t, err)
	own := ofResources(t, resources)
	p.listeners = append(p.listeners, own.listeners...)
	maps.Copy(p.routes, own.routes)
	local, edge = addresses[0], loopback(port)
	run(t, p, local, edge)
	return local, edge
}

// The share of the stable variation is given to no other, however few of its endpoints are left.
func TestTheShareOfTheStableVariationGoesToNoOther(t *testing.T) {
	a, c := mortal(t, "a"), mortal(t, "c")
	l := startLoad(t, serve(t, halves([]*backend.Mortal{a}, []*backend.Mortal{c}))[0], "")
	served(t, "both are there", l.look(300), []string{"a"}, []string{"c"})
	a.End()
	l.look(20) // what was under way
	l.mu.Lock()
	l.failed = nil
	l.mu.Unlock()
	by := l.look(300)
	l.mu.Lock()
	within(t, "failed", len(l.failed), len(l.failed)+by["c"], 0.5)
	l.failed = nil
	l.mu.Unlock()
	a.Start()
	eventuallyServed(t, l, "a", "c")
}

// What an application answers, or breaks off, moves no share: its failures are to be seen.
func TestWhatAnApplicationAnswersEjectsNoEndpoint(t *testing.T) {
	var asked atomic.Int64
	var answer atomic.Pointer[http.HandlerFunc]
	a := mortal(t, "a")
	c := backend.NewMortal(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Variation", "c")
		(*answer.Load())(w, r)
	})
	tests := map[string]http.HandlerFunc{
		"answers 500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"breaks off one of ten": func(http.ResponseWriter, *http.Request) {
			if asked.Add(1)%10 == 0 {
				panic(http.ErrAbortHandler)
			}
		},
		"answers 503": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	}
	for name, how := range tests {
		t.Run(name, func(t *testing.T) {
			answer.Store(&how)
			l := startLoad(t, serve(t, halves([]*backend.Mortal{a}, []*backend.Mortal{c}))[0], "")
			by := l.look(600)
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(l.failed) == 0 {
				t.Error("no request failed")
			}
			canary := len(l.failed) + by["c"]
			within(t, "at the canary", canary, canary+by["a"], 0.5)
		})
	}
}

// An endpoint swallows packets: the proxy waits for a second at a time, and the request is served.
func TestAnEndpointThatSwallowsPacketsCostsNoRequest(t *testing.T) {
	tests := map[string]struct {
		canary   func(t *testing.T) []ir.Endpoint
		want     [][]string
		attempts int
	}{
		"one of two": {func(t *testing.T) []ir.Endpoint {
			return []ir.Endpoint{endpoint(backend.Hole(t), ir.Ready), endpoint(mortal(t, "c").Address, ir.Ready)}
		}, [][]string{{"a"}, {"c"}}, 2},
		"the only one": {func(t *testing.T) []ir.Endpoint { return []ir.Endpoint{endpoint(backend.Hole(t), ir.Ready)} }, [][]string{{"a"}}, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := halves([]*backend.Mortal{mortal(t, "a")}, nil)
			s.Ports[0].Slots[1].Endpoints = test.canary(t)
			p, addresses := arranged(t, s)
			p.routes[envoyname.RouteName("shop", "web0", 80)].VirtualHosts[0].IncludeAttemptCountInResponse = true
			run(t, p, addresses...)
			l := startLoad(t, addresses[0], "")
			eventuallyServed(t, l, slices.Concat(test.want...)...)
			served(t, "packets are swallowed", l.look(600), test.want...)
			l.noneFailed("packets are swallowed")
			if l.attempts < 2 || l.attempts > test.attempts {
				t.Errorf("a request took %d attempts, want %d at most, of a second each but the last", l.attempts, test.attempts)
			}
			t.Logf("the slowest answer took %s", l.slowest)
		})
	}
}

// All endpoints swallow packets: a request ends after two rounds of attempts, of a second each.
func TestARequestThatNoEndpointTakesEndsAfterTwoRounds(t *testing.T) {
	s := halves(nil, nil)
	for i := range s.Ports[0].Slots {
		s.Ports[0].Slots[i].Endpoints = []ir.Endpoint{endpoint(backend.Hole(t), ir.Ready), endpoint(backend.Hole(t), ir.Ready)}
	}
	p, addresses := arranged(t, s)
	p.routes[envoyname.RouteName("shop", "web0", 80)].VirtualHosts[0].IncludeAttemptCountInResponse = true
	run(t, p, addresses...)
	got := askFor(t, client(t, false), addresses[0], "")
	if attempts := got.header.Get("X-Envoy-Attempt-Count"); got.status != http.StatusServiceUnavailable || attempts != "8" {
		t.Errorf("the request gets %d after %s attempts, want 503 after 8", got.status, attempts)
	}
}

// An endpoint that cannot be reached is left out for longer each time. The times are the proxy's.
func TestAnEndpointIsTriedAgainLaterEachTime(t *testing.T) {
	rotation.Share(t, 3)
	p, addresses := arranged(t, web(nil, slot("", endpoint(freeport.Address(t), ir.Ready), endpoint(mortal(t, "a").Address, ir.Ready))))
	p.ejections = filepath.Join(t.TempDir(), "ejections")
	run(t, p, addresses...)
	l := startLoad(t, addresses[0], "")
	var out []int // how long the endpoint was left out, in whole seconds
	poll.Until(t, patience, "the endpoint was tried again twice", func() error {
		text, err := os.ReadFile(p.ejections)
		if err != nil {
			return err
		}
		out = nil
		for line := range strings.Lines(string(text)) {
			var event struct {
				Action  string
				Seconds string `json:"secs_since_last_action"`
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				return err
			}
			if event.Action == "UNEJECT" {
				seconds, err := strconv.Atoi(event.Seconds)
				if err != nil {
					return err
				}
				out = append(out, seconds)
			}
		}
		if len(out) < 2 {
			return fmt.Errorf("the proxy says %s", text)
		}
		return nil
	})
	if out[0] < 2 || out[1] < 4 {
		t.Errorf("it was left out for %d s, want at least 2 and 4", out)
	}
	l.noneFailed("one of two endpoints cannot be reached")
}
