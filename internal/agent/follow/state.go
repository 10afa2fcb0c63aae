// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"maps"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Request is what the agent sends.
type Request struct {
	Type                   ads.Type
	Subscribe, Unsubscribe []string
	// Initial are versions by name, in the first request of a type.
	Initial map[string]string
	// Nonce answers a response, and Refused says why the agent did not take the response.
	Nonce, Refused string
}

// Response is what the server sends. Bodies are the encoded google.protobuf.Any, as package ads has
// them.
type Response struct {
	Type      ads.Type
	Nonce     string
	Resources []*ads.Resource
	Removed   []string
}

// changes are resources by key; nil is the removal of one.
type changes map[ads.Key]*ads.Resource

// pending is a response without an answer.
type pending struct {
	Response
	changes changes
	since   time.Time
}

// State of one agent. Only one goroutine uses it. [New] makes one.
type State struct {
	// check says why the program cannot carry a port out; nil if the program can.
	check func(envoyxds.Port) error
	// inForce is what is proven, and what was held when the agent began.
	inForce *ads.View
	// goal are versions that the program is brought to though the server was told of a refusal.
	goal    changes
	pending []*pending
	// alone says that the first response is tried without those behind it.
	alone bool
	// started says that the program has ports, so that each resource waits for its proof.
	started bool
	// proven says that the program was proven to have ports since the agent began.
	proven bool
	// asked says that the agent has asked for listeners, and begun that the server has answered, and so
	// whether there are any.
	asked, begun bool
	// outdated says that versions are in force that the server does not know to be.
	outdated bool
	// refused says that the program has refused something on this stream, which only a new one
	// brings again.
	refused bool
}

// New state of an agent that holds resources of before; check says why a port cannot be carried out.
func New(held []*ads.Resource, check func(envoyxds.Port) error) *State {
	return &State{check: check, inForce: ads.NewView(held...), goal: changes{}, started: len(held) > 0}
}

// Held are the resources that are in force.
func (s *State) Held() (held []*ads.Resource) {
	for t := ads.Cluster; t <= ads.Route; t++ {
		for _, name := range s.inForce.Names(t) {
			held = append(held, s.inForce.Get(t, name))
		}
	}
	return held
}

// IsOutdated reports whether a new stream would tell the server of versions that are in force.
func (s *State) IsOutdated() bool { return s.outdated }

// HasRefused reports whether the program has refused something on this stream.
func (s *State) HasRefused() bool { return s.refused }

// IsWaiting reports whether a response waits for its proof.
func (s *State) IsWaiting() bool { return len(s.pending) > 0 }

// Begin a stream, which tells the server of the versions that are in force. What the program was being
// brought to stays its goal.
func (s *State) Begin() []Request {
	for _, p := range s.pending {
		s.aim(p.changes)
	}
	s.pending, s.alone, s.outdated, s.refused, s.begun = nil, false, false, false, false
	requests := []Request{
		{Type: ads.Cluster, Initial: s.versions(ads.Cluster)},
		{Type: ads.Endpoints, Subscribe: slices.Clone(s.inForce.Names(ads.Cluster)), Initial: s.versions(ads.Endpoints)},
	}
	if s.asked = s.started; !s.asked {
		return requests
	}
	return append(requests, s.ask()...)
}

// ask for listeners and their routes. An agent that starts does so when each cluster has endpoints, as
// an Envoy does: before, the server would send routes that answer 503.
func (s *State) ask() []Request {
	return []Request{
		{Type: ads.Listener, Initial: s.versions(ads.Listener)},
		{Type: ads.Route, Subscribe: s.routes(s.inForce), Initial: s.decided()},
	}
}

// decided are the versions of routes. Before the first proof they lack those that somebody has decided
// about: the program may not run, or somebody may have edited its entries while no agent was there.
func (s *State) decided() map[string]string {
	of := s.versions(ads.Route)
	for name := range of {
		if !s.proven && s.inForce.Get(ads.Route, name).Version.Sequence > 0 {
			delete(of, name)
		}
	}
	return of
}

// aim keeps other versions of resources that are in force as the goal. Resources that are not in
// force are forgotten: the server does not know that the agent has them, and so would not remove them.
func (s *State) aim(c changes) {
	for k, r := range c {
		if r != nil && s.inForce.Get(k.Type, k.Name) != nil {
			s.goal[k] = r
		}
	}
}

func (s *State) versions(t ads.Type) map[string]string {
	of := map[string]string{}
	for _, name := range s.inForce.Names(t) {
		of[name] = s.inForce.Get(t, name).Version.String()
	}
	return of
}

// routes that listeners of a view name.
func (s *State) routes(v *ads.View) []string {
	named := map[string]bool{}
	for _, name := range v.Names(ads.Listener) {
		if route, is := routeOf(v.Get(ads.Listener, name)); is {
			named[route] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// Receive takes a response at a time, and returns what is sent at once: subscriptions, and the answer
// to a response that no request can contradict.
func (s *State) Receive(now time.Time, r Response) []Request {
	before := s.target(len(s.pending))
	p := &pending{Response: r, changes: changes{}, since: now}
	for _, resource := range r.Resources {
		k := ads.Key{Type: r.Type, Name: resource.Name}
		p.changes[k] = resource
		delete(s.goal, k)
	}
	for _, name := range r.Removed {
		p.changes[ads.Key{Type: r.Type, Name: name}] = nil
		delete(s.goal, ads.Key{Type: r.Type, Name: name})
	}
	s.begun = s.begun || r.Type == ads.Listener
	s.pending = append(s.pending, p)
	requests := s.subscribe(before, s.target(len(s.pending)))
	if s.mayHaveAtOnce(p) {
		s.pending = s.pending[:len(s.pending)-1]
		s.take(p.changes)
		requests = append(requests, Request{Type: r.Type, Nonce: r.Nonce})
	}
	if v := s.target(len(s.pending)); !s.asked && len(without(v.Names(ads.Cluster), v.Names(ads.Endpoints))) == 0 {
		s.asked = true
		requests = append(requests, s.ask()...)
	}
	return requests
}

// mayHaveAtOnce is so of listeners, which the program has none of, and before the program has ports of
// all that no decision is behind: otherwise the window of the server would be too small for a start.
func (s *State) mayHaveAtOnce(p *pending) bool {
	return p.Type == ads.Listener || len(p.changes) == 0 || !s.started &&
		!slices.ContainsFunc(p.Resources, func(r *ads.Resource) bool { return r.Version.Sequence > 0 })
}

// subscribe to what the next view names and the one before does not. Resources that are no longer
// named are gone at once: no later response speaks of them.
func (s *State) subscribe(before, after *ads.View) []Request {
	var requests []Request
	for _, of := range []struct {
		t       ads.Type
		was, is []string
	}{{ads.Endpoints, before.Names(ads.Cluster), after.Names(ads.Cluster)}, {ads.Route, s.routes(before), s.routes(after)}} {
		r := Request{Type: of.t, Subscribe: without(of.is, of.was), Unsubscribe: without(of.was, of.is)}
		if len(r.Subscribe)+len(r.Unsubscribe) > 0 {
			requests = append(requests, r)
		}
		for _, name := range r.Unsubscribe {
			s.forget(ads.Key{Type: of.t, Name: name})
		}
	}
	return requests
}

// forget a resource that is not wanted any more.
func (s *State) forget(k ads.Key) {
	s.take(changes{k: nil})
	delete(s.goal, k)
	for _, p := range s.pending {
		delete(p.changes, k)
	}
}

// without returns the names that are not among others.
func without(names, others []string) (rest []string) {
	have := map[string]bool{}
	for _, name := range others {
		have[name] = true
	}
	for _, name := range names {
		if !have[name] {
			rest = append(rest, name)
		}
	}
	return rest
}

// take changes over into what is in force.
func (s *State) take(c changes) { s.inForce = with(s.inForce, c) }

func with(v *ads.View, c changes) *ads.View {
	var gone []ads.Key
	var set []*ads.Resource
	for k, r := range c {
		if r == nil {
			gone = append(gone, k)
		} else {
			set = append(set, r)
		}
	}
	next, _ := v.With(gone, set)
	return next
}

// target is what the program is brought to with the first responses that wait.
func (s *State) target(responses int) *ads.View {
	v := with(s.inForce, s.goal)
	for _, p := range s.pending[:responses] {
		v = with(v, p.changes)
	}
	return v
}
