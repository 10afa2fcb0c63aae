// SPDX-License-Identifier: Apache-2.0

// Package proxy is what an Envoy 1.40 asks and answers on a delta stream: a state
// machine without a network.
//
//   - It begins with clusters, asks for the endpoints of each, and for listeners when
//     all clusters have theirs; for routes by the names that the listeners have
//     (https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/operations/init).
//   - The answer about clusters is withheld until all of them have endpoints, and then
//     goes before that about the endpoints, as was measured of a real one.
//   - One that comes back asks for all four types at once, for endpoints and routes by
//     name, and says which versions it has; measured as well.
package proxy

import (
	"maps"
	"slices"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/wire"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Mode is how a proxy misbehaves.
type Mode string

// The modes.
const (
	// Normal does not.
	Normal Mode = "normal"
	// Silent never answers a response.
	Silent Mode = "never-ACK"
	// Refusing refuses each version of one route.
	Refusing Mode = "NACK-one"
	// Slow leaves responses unread for a while.
	Slow Mode = "slow"
)

// Proxy is one. The zero value is none; see [New].
type Proxy struct {
	node wire.Node
	// routeOf is the route that a listener names, and refuses the one that Refusing does.
	routeOf func(listener string) string
	refuses string
	mode    Mode

	// held are versions by name, by type.
	held [4]map[string]string
	// warming are clusters without endpoints, withheld the answers that wait for them.
	warming  map[string]bool
	withheld []wire.Request
	opened   bool // listeners were asked for on this stream
}

// New makes one that has nothing yet.
func New(node wire.Node, routeOf func(listener string) string, refuses string) *Proxy {
	p := &Proxy{node: node, routeOf: routeOf, refuses: refuses, mode: Normal}
	p.Forget()
	return p
}

// Forget everything, as one that starts.
func (p *Proxy) Forget() {
	for t := range p.held {
		p.held[t] = map[string]string{}
	}
	p.warming = map[string]bool{}
}

// Behave in a mode from now on.
func (p *Proxy) Behave(m Mode) { p.mode = m }

// Mode that it is in.
func (p *Proxy) Mode() Mode { return p.mode }

// Held says how many resources of each type it has: clusters, endpoints, listeners,
// routes.
func (p *Proxy) Held() (n [4]int) {
	for t := range p.held {
		n[t] = len(p.held[t])
	}
	return n
}

// Start a stream.
func (p *Proxy) Start() []wire.Request {
	p.withheld = nil
	p.opened = len(p.held[ads.Listener]) > 0
	requests := []wire.Request{{URL: ads.Cluster.URL(), Initial: p.held[ads.Cluster], Node: &p.node}}
	if !p.opened { // it may have been cut off while it started
		p.Forget()
		requests[0].Initial = nil
		return requests
	}
	return append(requests,
		p.resume(ads.Endpoints, maps.Keys(p.held[ads.Cluster])),
		wire.Request{URL: ads.Listener.URL(), Initial: p.held[ads.Listener]},
		p.resume(ads.Route, func(yield func(string) bool) {
			for l := range p.held[ads.Listener] {
				if !yield(p.routeOf(l)) {
					return
				}
			}
		}))
}

func (p *Proxy) resume(t ads.Type, names func(func(string) bool)) wire.Request {
	return wire.Request{URL: t.URL(), Subscribe: slices.Sorted(names), Initial: p.held[t]}
}

// Receive a response; the result is what it sends.
func (p *Proxy) Receive(r wire.Response) []wire.Request {
	t, known := ads.TypeOf(r.URL)
	if !known {
		return nil
	}
	if p.mode == Refusing && t == ads.Route && slices.ContainsFunc(r.Resources, func(x wire.Resource) bool { return x.Name == p.refuses }) {
		return []wire.Request{{URL: r.URL, Nonce: r.Nonce, Refused: "it is refused for the sake of a test"}}
	}
	var requests []wire.Request
	switch t {
	case ads.Cluster:
		requests = p.clusters(r)
	case ads.Endpoints:
		requests = p.endpoints(r)
	case ads.Listener:
		requests = p.listeners(r)
	default:
		p.take(t, r)
		requests = []wire.Request{{URL: r.URL, Nonce: r.Nonce}}
	}
	if p.mode == Silent {
		requests = slices.DeleteFunc(requests, func(q wire.Request) bool { return q.Nonce != "" })
	}
	return requests
}

func (p *Proxy) take(t ads.Type, r wire.Response) {
	for _, resource := range r.Resources {
		p.held[t][resource.Name] = resource.Version
	}
	for _, name := range r.Removed {
		delete(p.held[t], name)
	}
}

func (p *Proxy) clusters(r wire.Response) []wire.Request {
	ask := wire.Request{URL: ads.Endpoints.URL()}
	for _, c := range r.Resources {
		if _, had := p.held[ads.Cluster][c.Name]; !had {
			ask.Subscribe = append(ask.Subscribe, c.Name)
		}
		p.warming[c.Name] = true
	}
	for _, name := range r.Removed {
		if _, had := p.held[ads.Cluster][name]; had {
			ask.Unsubscribe = append(ask.Unsubscribe, name)
		}
		delete(p.warming, name)
		delete(p.held[ads.Endpoints], name)
	}
	p.take(ads.Cluster, r)
	p.withheld = append(p.withheld, wire.Request{URL: r.URL, Nonce: r.Nonce})
	var requests []wire.Request
	if len(ask.Subscribe)+len(ask.Unsubscribe) > 0 {
		requests = append(requests, ask)
	}
	return append(requests, p.warm()...)
}

func (p *Proxy) endpoints(r wire.Response) []wire.Request {
	p.take(ads.Endpoints, r)
	for _, e := range r.Resources {
		delete(p.warming, e.Name)
	}
	released := p.warm()
	answer := wire.Request{URL: r.URL, Nonce: r.Nonce}
	if n := len(released); n > 0 && released[n-1].Nonce == "" { // it goes on with listeners
		return append(released[:n-1], answer, released[n-1])
	}
	return append(released, answer)
}

// warm is what happens when all clusters have endpoints.
func (p *Proxy) warm() []wire.Request {
	if len(p.warming) > 0 {
		return nil
	}
	released := p.withheld
	p.withheld = nil
	if !p.opened {
		p.opened = true
		released = append(released, wire.Request{URL: ads.Listener.URL()})
	}
	return released
}

func (p *Proxy) listeners(r wire.Response) []wire.Request {
	ask := wire.Request{URL: ads.Route.URL()}
	for _, l := range r.Resources {
		if _, had := p.held[ads.Listener][l.Name]; !had {
			ask.Subscribe = append(ask.Subscribe, p.routeOf(l.Name))
		}
	}
	for _, l := range r.Removed {
		if _, had := p.held[ads.Listener][l]; had {
			ask.Unsubscribe = append(ask.Unsubscribe, p.routeOf(l))
			delete(p.held[ads.Route], p.routeOf(l))
		}
	}
	p.take(ads.Listener, r)
	answer := wire.Request{URL: r.URL, Nonce: r.Nonce}
	if len(ask.Subscribe)+len(ask.Unsubscribe) == 0 {
		return []wire.Request{answer}
	}
	return []wire.Request{ask, answer}
}
