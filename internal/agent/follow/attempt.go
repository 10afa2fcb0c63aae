// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// Attempt is what the program is brought to next.
type Attempt struct {
	Ports []envoyxds.Port
	// responses are those that the ports are made of.
	responses []*pending
	// held are the routes of ports that stay as they are, since a resource is still to come.
	held map[string]bool
	goal changes
}

// RefusedError is what the program says against its configuration.
type RefusedError struct{ Said string }

func (e *RefusedError) Error() string { return e.Said }

// Result of an attempt. Without an error, and with no process late, the ports are in force.
type Result struct {
	// Late are processes of the program that do not have the ports, each with its reason.
	Late []string
	Err  error
}

// Bounds of answers.
const (
	// proofTime is how long a response waits for its proof until it is refused: less than the 30 s after
	// which the server takes an agent to be silent.
	proofTime = 15 * time.Second
	// maxRefusal bounds the text of a refusal, in bytes; the server keeps 2,048.
	maxRefusal = 1024
)

// Next returns what the program is brought to, and the answers to responses that no program could
// carry out; false as long as the program has no ports and some of its first resources are to come.
func (s *State) Next() (a Attempt, answers []Request, due bool) {
	if !s.started && !s.isComplete() {
		return Attempt{}, nil, false
	}
	for {
		n := len(s.pending)
		if s.alone {
			n = min(n, 1)
		}
		a = Attempt{responses: slices.Clone(s.pending[:n]), held: map[string]bool{}, goal: maps.Clone(s.goal)}
		var refused []Request
		if a.Ports, refused = s.read(s.target(n), a.held); len(refused) == 0 {
			return a, answers, true
		}
		answers = append(answers, refused...)
	}
}

// isComplete says whether all that the listeners and clusters name has come.
func (s *State) isComplete() bool {
	v := s.target(len(s.pending))
	if !s.begun {
		return false
	}
	for t, names := range map[ads.Type][]string{ads.Endpoints: v.Names(ads.Cluster), ads.Route: s.routes(v)} {
		if slices.ContainsFunc(names, func(name string) bool { return v.Get(t, name) == nil }) {
			return false
		}
	}
	return len(v.Names(ads.Route)) > 0
}

// read the ports of a view. A port of which a resource is to come stays as it is in force. A response
// with a resource that cannot be carried out is refused, and no longer pending.
func (s *State) read(v *ads.View, held map[string]bool) (ports []envoyxds.Port, answers []Request) {
	read, refused := envoyxds.ReadPorts(v)
	for _, p := range read {
		if err := s.check(p); err != nil {
			refused = append(refused, envoyxds.Refusal{Key: ads.Key{Type: ads.Route, Name: envoyname.RouteName(p.Namespace, p.Service, p.Number)}, Err: err})
			continue
		}
		ports = append(ports, p)
	}
	for _, r := range refused {
		route := routeName(r.Key)
		if _, incomplete := errors.AsType[*envoyxds.IncompleteError](r.Err); !incomplete {
			if answer, found := s.refuseRoute(route, r.Err.Error()); found {
				answers = append(answers, answer)
				continue
			}
		}
		held[route] = true
	}
	if len(held) == 0 || len(answers) > 0 {
		return ports, answers
	}
	present, _ := envoyxds.ReadPorts(s.inForce)
	for _, p := range present {
		if held[envoyname.RouteName(p.Namespace, p.Service, p.Number)] && s.check(p) == nil {
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(a, b envoyxds.Port) int {
		return strings.Compare(envoyname.RouteName(a.Namespace, a.Service, a.Number), envoyname.RouteName(b.Namespace, b.Service, b.Number))
	})
	return ports, nil
}

// routeName is the route of the port of a resource.
func routeName(k ads.Key) string {
	if k.Type == ads.Route {
		return k.Name
	}
	slot, _ := envoyname.ParseSlot(k.Name) // of a name that is none of ours it is no route
	return envoyname.RouteName(slot.Namespace, slot.Service, slot.Port)
}

// refuseRoute refuses the last response that has a resource of a port; false if none has.
func (s *State) refuseRoute(route, why string) (Request, bool) {
	for i, p := range slices.Backward(s.pending) {
		if p.touches(func(name string) bool { return name == route }) {
			s.pending = slices.Delete(s.pending, i, i+1)
			return refusal(p, why), true
		}
	}
	return Request{}, false
}

func (p *pending) touches(routes func(string) bool) bool {
	for k := range p.changes {
		if routes(routeName(k)) {
			return true
		}
	}
	return false
}

func refusal(p *pending, why string) Request {
	return Request{Type: p.Type, Nonce: p.Nonce, Refused: strings.ToValidUTF8(why[:min(len(why), maxRefusal)], "")}
}

// Conclude takes the result of an attempt at a time, and returns the answers to its responses.
func (s *State) Conclude(now time.Time, a Attempt, r Result) []Request {
	said, isRefused := errors.AsType[*RefusedError](r.Err)
	switch {
	case r.Err == nil && len(r.Late) == 0:
		return s.prove(a)
	case isRefused && len(a.responses) > 1:
		s.alone = true // the next attempt has the first response alone
		return nil
	case isRefused:
		s.refused = true
		if len(a.responses) == 1 && s.drop(a.responses[0]) {
			return []Request{refusal(a.responses[0], said.Said)}
		}
		return nil
	default:
		return s.postpone(now, r)
	}
}

// prove acknowledges each response of an attempt of which no resource is held.
func (s *State) prove(a Attempt) (answers []Request) {
	s.started, s.proven = true, true
	for k, r := range a.goal {
		if !a.held[routeName(k)] && s.goal[k] == r {
			delete(s.goal, k)
			s.take(changes{k: r})
			s.outdated = true
		}
	}
	for _, p := range a.responses {
		if p.touches(func(route string) bool { return a.held[route] }) || !s.drop(p) {
			continue
		}
		s.take(p.changes)
		answers = append(answers, Request{Type: p.Type, Nonce: p.Nonce})
	}
	s.alone = s.alone && len(s.pending) > 0
	return answers
}

// drop a response that has its answer; false if the stream that brought it has ended.
func (s *State) drop(p *pending) bool {
	i := slices.Index(s.pending, p)
	if i >= 0 {
		s.pending = slices.Delete(s.pending, i, i+1)
	}
	return i >= 0
}

// postpone refuses the responses whose proof has not come in time, and keeps them as the goal.
func (s *State) postpone(now time.Time, r Result) (answers []Request) {
	why := fmt.Sprintf("not proven for %s: ", proofTime)
	if r.Err != nil {
		why += r.Err.Error()
	} else {
		why += strings.Join(r.Late, "; ")
	}
	for _, p := range slices.Clone(s.pending) {
		if now.Sub(p.since) < proofTime {
			continue
		}
		s.drop(p)
		s.aim(p.changes)
		answers = append(answers, refusal(p, why))
	}
	return answers
}
