// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/tokens"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// H5 of the review of the mesh: each bound of one pod, on a real server.
func TestAHostilePodEndsAtTheBoundOf(t *testing.T) {
	for name, tc := range map[string]struct {
		config serve.Config
		attack func(*world) proxy // the stream that ends
		says   string
		bound  serve.Bound
	}{
		"names that are not there": {serve.Config{Names: 10}, func(w *world) proxy {
			p := w.connect("evil")
			for i := range 12 { // one for the one that is there
				p.ask(ads.Endpoints, fmt.Sprint("evil-", i))
			}
			return p
		}, "12 names that are not there, want at most 10", serve.BoundNames},
		"names of all of its streams": {serve.Config{Names: 10, PodNames: 15}, func(w *world) proxy {
			first, second := w.connect("evil"), w.connect("evil")
			first.ask(ads.Endpoints, many(10)...)
			first.gets()
			second.ask(ads.Endpoints, many(10)...)
			return second
		}, "the streams of the pod ask for 18 names that are not there, want at most 15", serve.BoundPodNames},
		"names that it says it has": {serve.Config{PodNames: 15}, func(w *world) proxy {
			p := w.connect("evil")
			had := map[string]string{}
			for _, name := range many(16) {
				had[name] = "0.x"
			}
			p.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(), InitialResourceVersions: had})
			return p
		}, "ask for 16 names that are not there, want at most 15", serve.BoundPodNames},
		"requests": {serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 10}}, func(w *world) proxy {
			p := w.connect("evil")
			for range 10 {
				p.ask(ads.Endpoints, "a")
			}
			return p
		}, "more than 1e-09 requests a second, after 10 at once", serve.BoundRequests},
		"answers to no response": {serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 10}}, func(w *world) proxy {
			p := w.connect("evil")
			for i := range 10 {
				p.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(), ResponseNonce: fmt.Sprint(100 + i)})
			}
			return p
		}, "requests a second", serve.BoundRequests},
		"bytes of requests": {serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 10}}, func(w *world) proxy {
			p := w.connect("evil")
			p.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(), ResourceNamesSubscribe: strings.Split(strings.Repeat("ab ", 20_000), " ")})
			return p
		}, "requests a second", serve.BoundRequests},
		"requests, with a stream for each": {serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 10}}, func(w *world) proxy {
			for range 5 {
				p := w.connect("evil")
				p.ask(ads.Endpoints, "a")
				p.gets()
				if err := p.stream.CloseSend(); err != nil {
					w.t.Fatal(err)
				}
				p.ends()
			}
			return w.connect("evil")
		}, "requests a second", serve.BoundRequests},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.config)
			w.group.Publish(ads.NewView(resource(ads.Endpoints, "a", "1")))
			if end := tc.attack(w).ends(); end.Code() != codes.ResourceExhausted || !strings.Contains(end.Message(), tc.says) {
				t.Errorf("it ends with %v, want %q", end, tc.says)
			}
			poll.Until(t, time.Minute, "the bound is counted once", func() error {
				if n := w.atBounds()[tc.bound]; n != 1 {
					return fmt.Errorf("%v", w.atBounds())
				}
				return nil
			})
			honest := w.connect("web-0") // which pays for none of it
			honest.ask(ads.Endpoints, "a")
			if got := honest.gets(); got != "Endpoints a=1" {
				t.Errorf("another pod gets %s", got)
			}
		})
	}
}

func TestAnswersToResponsesAreNoRequests(t *testing.T) {
	w := newWorld(t, serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 4}})
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "0")))
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	p.gets()
	for i := range 20 {
		w.group.Publish(ads.NewView(resource(ads.Cluster, "a", fmt.Sprint(i+1))))
		if got, want := p.gets(), fmt.Sprint("Cluster a=", i+1); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// An Envoy repeats its node in each request, and a start used half of the tokens up.
func TestTheNodeOfAnEnvoyCostsNoTokens(t *testing.T) {
	w := newWorld(t, serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 30}})
	w.group.Publish(ads.NewView(resource(ads.Endpoints, "a", "1"), resource(ads.Endpoints, "b", "1")))
	p := w.connect("web-0")
	node := envoy(40)
	node.Extensions = append(node.Extensions, &core.Extension{Name: strings.Repeat("x", 61_000)})
	for range 10 {
		p.send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: ads.Endpoints.URL(), ResourceNamesSubscribe: []string{"a"}})
	}
	for range 10 {
		p.gets()
	}
	if n := w.atBounds(); len(n) > 0 {
		t.Errorf("the proxy met the bounds %v", n)
	}
}

// Canaries came and went at a high rate, and the proxies that followed were refused for their
// requests.
func TestRequestsThatFollowFromChangesDoNotCount(t *testing.T) {
	w := newWorld(t, serve.Config{Requests: tokens.Rate{PerSecond: 1e-9, Burst: 10}})
	always := []*ads.Resource{resource(ads.Cluster, "a", "1")}
	w.group.Publish(ads.NewView(always...))
	p := w.connect("web-0")
	p.ask(ads.Cluster)
	p.gets()
	for i := range 20 {
		name := fmt.Sprint("canary-", i)
		w.group.Publish(ads.NewView(append(always, resource(ads.Cluster, name, "1"), resource(ads.Endpoints, name, "1"))...))
		if got, want := p.gets(), "Cluster "+name+"=1"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		p.ask(ads.Endpoints, name)
		if got, want := p.gets(), "Endpoints "+name+"=1"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		w.group.Publish(ads.NewView(always...))
		p.gets() // the removal
		p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: ads.Endpoints.URL(), ResourceNamesUnsubscribe: []string{name}})
	}
	if n := w.atBounds(); len(n) > 0 {
		t.Errorf("the proxy met the bounds %v", n)
	}
}

// The names are not there any more, but the proxy was given them: it is served until it leaves them,
// and when it comes back as well.
func TestAProxyThatLosesAllServicesAtOnceIsServed(t *testing.T) {
	w := newWorld(t, serve.Config{Names: 10})
	var all []*ads.Resource
	had := map[string]string{}
	for _, name := range many(100) {
		all = append(all, resource(ads.Endpoints, name, "1"))
		had[name] = "0.1"
	}
	w.group.Publish(ads.NewView(all...))
	p := w.connect("gateway-0")
	p.ask(ads.Endpoints, many(100)...)
	for range 100 { // each alone, since none is proven
		p.gets()
	}
	w.group.Publish(ads.NewView(resource(ads.Endpoints, "a", "1")))
	p.ask(ads.Endpoints, "a")
	for got := ""; !strings.Contains(got, " a=1"); {
		got = p.gets()
	}
	back := w.connect("gateway-0")
	back.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Endpoints.URL(), ResourceNamesSubscribe: append(many(100), "a"), InitialResourceVersions: had})
	for got := ""; !strings.Contains(got, " a=1"); {
		got = back.gets()
	}
}

// L5 of the review of the mesh: the proxy reads nothing, so that the response blocks.
func TestAStreamThatIsBlockedEndsWithItsPod(t *testing.T) {
	w := newWorld(t, serve.Config{Stream: ads.Config{Window: 1 << 30}})
	w.connect("web-0").ask(ads.Cluster)
	for i, proxies := 0, []serve.Connected(nil); len(proxies) == 0 || !proxies[0].Blocked; i++ {
		w.group.Publish(ads.NewView(resource(ads.Cluster, "a", fmt.Sprint(i, strings.Repeat("x", 1<<20)))))
		proxies = w.server.Proxies(t.Context(), nil)
	}
	w.mu.Lock()
	w.ended["web-0"].end()
	w.mu.Unlock()
	poll.Until(t, time.Minute, "the stream is gone", func() error {
		if all := w.server.Proxies(t.Context(), nil); len(all) != 0 {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
}
