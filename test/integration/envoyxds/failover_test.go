// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// halves divides all requests between a stable and a canary variation with these upstreams.
func halves(stable, canary []*backend.Mortal) ir.Service {
	endpoints := func(of []*backend.Mortal) (all []ir.Endpoint) {
		for _, m := range of {
			all = append(all, endpoint(m.Address, ir.Ready))
		}
		return all
	}
	r := &ir.Routing{
		Shares: traffic.Split{{Variation: "stable", Weight: traffic.Total / 2}, {Variation: "canary", Weight: traffic.Total / 2, Reserved: traffic.Total}},
		Key:    ir.Key{Kind: ir.PerRequest}, Salt: "s1", Override: "x-variation",
	}
	return web(r, slot("stable", endpoints(stable)...), slot("canary", endpoints(canary)...))
}

// mortal is an upstream that answers with its name.
func mortal(t testing.TB, name string) *backend.Mortal {
	t.Helper()
	return backend.NewMortal(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Variation", name)
		_, _ = io.Copy(io.Discard, r.Body) // what came of it is in the answer
	})
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
// none of it.
func TestAProxyWithoutAServerLosesNoRequest(t *testing.T) {
	a, b := mortal(t, "a"), mortal(t, "b")
	c, d := mortal(t, "c"), mortal(t, "d")
	address := serve(t, halves([]*backend.Mortal{a, b}, []*backend.Mortal{c, d}))[0]
	l := startLoad(t, address)
	const enough = 600
	served(t, "all are there", l.look(enough), []string{"a", "b"}, []string{"c", "d"})

	c.End()
	eventuallyServed(t, l, "a", "b", "d")
	served(t, "one of the canary's endpoints is gone", l.look(enough), []string{"a", "b"}, []string{"d"})
	l.noneFailed("one of the canary's endpoints ends")

	d.End()
	eventuallyServed(t, l, "a", "b")
	l.noneFailed("the canary ends")
	forced := ask(t, client(t, false), address, "X-Variation", "canary")
	if forced.status != http.StatusServiceUnavailable {
		t.Errorf("a request that is forced to the canary gets %d from %q", forced.status, forced.header.Get("Variation"))
	}

	a.End()
	eventuallyServed(t, l, "b")
	l.noneFailed("one of the stable endpoints ends besides")

	c.Start()
	a.Start()
	eventuallyServed(t, l, "a", "b", "c")
	served(t, "the canary is back", l.look(enough), []string{"a", "b"}, []string{"c"})
	l.noneFailed("endpoints come back")
	t.Logf("the slowest answer took %s", l.slowest)
}

// The share of the stable variation is given to no other, however few of its endpoints are left.
func TestTheShareOfTheStableVariationGoesToNoOther(t *testing.T) {
	a, c := mortal(t, "a"), mortal(t, "c")
	l := startLoad(t, serve(t, halves([]*backend.Mortal{a}, []*backend.Mortal{c}))[0])
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
			l := startLoad(t, serve(t, halves([]*backend.Mortal{a}, []*backend.Mortal{c}))[0])
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
		canary func(t *testing.T) []ir.Endpoint
		want   [][]string
	}{
		"one of two": {func(t *testing.T) []ir.Endpoint {
			return []ir.Endpoint{endpoint(backend.Hole(t), ir.Ready), endpoint(mortal(t, "c").Address, ir.Ready)}
		}, [][]string{{"a"}, {"c"}}},
		"the only one": {func(t *testing.T) []ir.Endpoint { return []ir.Endpoint{endpoint(backend.Hole(t), ir.Ready)} }, [][]string{{"a"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := halves([]*backend.Mortal{mortal(t, "a")}, nil)
			s.Ports[0].Slots[1].Endpoints = test.canary(t)
			l := startLoad(t, serve(t, s)[0])
			eventuallyServed(t, l, slices.Concat(test.want...)...)
			served(t, "packets are swallowed", l.look(600), test.want...)
			l.noneFailed("packets are swallowed")
			t.Logf("the slowest answer took %s", l.slowest)
		})
	}
}
