// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// The pitfalls by their numbers are those of docs/reference/xds-pitfalls.md.

// Some read nothing, and everybody publishes at once.
func TestPitfall11WhoPublishesWaitsForNoProxy(t *testing.T) {
	const publishers, each = 8, 50
	w := newWorld(t, serve.Config{Stream: ads.Config{Window: 1 << 30}})
	for i := range 3 {
		w.connect(fmt.Sprint("slow-", i)).ask(ads.Cluster)
	}
	quick := w.connect("quick")
	quick.ask(ads.Cluster)
	padding := make([]byte, 300<<10) // a few are more than a connection takes
	var done sync.WaitGroup
	for p := range publishers {
		done.Go(func() {
			for i := range each {
				w.group.Publish(ads.NewView(resource(ads.Cluster, "a", fmt.Sprint(p, " ", i, " ", string(padding)))))
			}
		})
	}
	done.Wait()
	w.group.Publish(ads.NewView(resource(ads.Cluster, "a", "last")))
	for quick.gets() != "Cluster a=last" {
	}
}

// scoped has a group for each token.
type scoped struct {
	*world
	groups map[string]*serve.Group
}

func (s scoped) Admit(ctx context.Context, authorization []string) (serve.Admission, error) {
	in, err := s.world.Admit(ctx, authorization)
	in.Group = s.groups[in.Proxy.Pod]
	return in, err
}

func TestPitfall18TheTokenDecidesWhatAProxySeesAndNotWhatItCallsItself(t *testing.T) {
	seen := map[string]string{"web-0": "Cluster web=1", "pay-0": "Cluster pay=1"}
	for name, id := range map[string]string{"the same name": "web-0", "no name": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, serve.Config{}, func(w *world) serve.Directory {
				return scoped{w, map[string]*serve.Group{
					"web-0": serve.NewGroup(ads.NewView(resource(ads.Cluster, "web", "1"))),
					"pay-0": serve.NewGroup(ads.NewView(resource(ads.Cluster, "pay", "1"))),
				}}
			})
			node := envoy(40)
			node.Id = id
			for pod, want := range seen {
				p := w.connect(pod)
				p.send(&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: ads.Cluster.URL()})
				if got := p.gets(); got != want {
					t.Errorf("%s is told %q, want %q", pod, got, want)
				}
			}
		})
	}
}

// A server that was just started knows of no version that was sent before.
func TestPitfall19AServerThatStartsAnewSendsNothingThatIsThereAlready(t *testing.T) {
	there := []*ads.Resource{resource(ads.Cluster, "a", "1"), resource(ads.Cluster, "b", "1")}
	has := map[string]string{}
	for _, r := range there {
		has[r.Name] = r.Version.String()
	}
	w := newWorld(t, serve.Config{})
	w.group.Publish(ads.NewView(there...))
	p := w.connect("web-0")
	p.send(&discovery.DeltaDiscoveryRequest{Node: envoy(40), TypeUrl: ads.Cluster.URL(), InitialResourceVersions: has})
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: ads.Endpoints.URL(), ResourceNamesSubscribe: []string{"none"}})
	if got := p.gets(); got != "Endpoints -none" { // it answers in the order of requests
		t.Fatalf("what it has is sent again: %q", got)
	}
	w.group.Publish(ads.NewView(there[0], resource(ads.Cluster, "b", "2")))
	if got := p.gets(); got != "Cluster b=2" {
		t.Errorf("got %q, want what has changed", got)
	}
}

func TestPitfall21WhatDoesNotDifferIsNotSentAndWhatIsOvertakenNeither(t *testing.T) {
	w := newWorld(t, serve.Config{})
	p := w.connect("web-0")
	p.ask(ads.Listener)
	w.group.Publish(ads.NewView(resource(ads.Listener, "a", "first")))
	r, err := p.stream.Recv() // and says nothing yet
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5_000 {
		w.group.Publish(ads.NewView(resource(ads.Listener, "a", fmt.Sprint("step ", i))))
		w.group.Publish(ads.NewView(resource(ads.Listener, "a", fmt.Sprint("step ", i)))) // a no-op
	}
	w.group.Publish(ads.NewView(resource(ads.Listener, "a", "last")))
	p.send(&discovery.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()})
	responses := 1
	for p.gets() != "Listener a=last" { // the session may have looked shortly before
		responses++
	}
	if responses > 2 {
		t.Errorf("%d responses for one state", responses)
	}
}
