// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"slices"
	"time"
)

// all is the name by which a client asks for everything.
const all = "*"

// Request is what a proxy sends.
type Request struct {
	Type Type
	// Subscribe and Unsubscribe are names; "*" is everything.
	Subscribe, Unsubscribe []string
	// Initial are the versions that it has when a stream begins.
	Initial map[string]string
	// Nonce is that of the response which it answers; empty when it answers none.
	Nonce string
	// Refused says that it did not take that response, and Message why.
	Refused bool
	Message string
}

// Receive takes a request.
func (s *Stream) Receive(now time.Time, r Request) []Effect {
	var effects []Effect
	if s.began.IsZero() {
		s.began = now
	}
	if r.Nonce != "" {
		effects = append(s.answer(now, r), s.overdue(now)...)
	}
	first := !s.types[r.Type].open
	if first {
		s.remember(r)
	}
	s.unsubscribe(r)
	s.subscribe(r, first)
	return s.settle(now, effects)
}

// remember takes the versions over that a proxy already has. A version that is
// none of ours is none: it gets ours.
func (s *Stream) remember(r Request) {
	own := &s.types[r.Type]
	s.resumed = s.resumed || len(r.Initial) > 0
	own.awaited = r.Type.wildcard() && len(r.Initial) == 0
	own.expect(len(r.Initial))
	for name, text := range r.Initial {
		told, _ := ParseVersion(text) // the zero version equals no version
		name = s.view.shared(r.Type, name)
		own.put(name, &held{known: true, origin: reported, told: &told})
		own.unsettle(name)
	}
}

func (s *Stream) subscribe(r Request, first bool) {
	everything := slices.Contains(r.Subscribe, all) || first && r.Type.wildcard() && len(r.Subscribe) == 0
	s.open(r.Type, everything)
	own := &s.types[r.Type]
	own.expect(len(r.Subscribe))
	for _, name := range r.Subscribe {
		if name == all {
			continue
		}
		s.noteName(r.Type, s.view.shared(r.Type, name), first)
	}
	if !first || own.wildcard {
		return
	}
	for name, h := range own.held { // had, and no longer wanted; nothing is common yet
		if !h.named {
			delete(own.held, name)
			own.settle(name)
		}
	}
}

// noteName notes that the proxy asks for a name; first says that it does so when it begins with the
// type.
func (s *Stream) noteName(t Type, name string, first bool) {
	own := &s.types[t]
	h := own.find(name)
	if h == nil {
		h = &held{}
		if s.view != nil && s.view.Get(t, name) == nil {
			h.origin = strange
		}
		own.put(name, h)
	}
	if !first { // who asks again has forgotten what it had
		*h = held{parked: h.parked, has: cmp.Or(h.has, h.sent), origin: h.origin.asked()}
	}
	h.named = true
	if first && t == Route && s.resumed && !h.known {
		h.known, h.told = true, &unknown
	}
	if t == Endpoints {
		c, _ := s.types[Cluster].peek(name)
		h.again = h.again || c.sent != nil // the cluster went ahead, and waits for them
	}
	own.unsettle(name)
}

func (s *Stream) unsubscribe(r Request) {
	own := &s.types[r.Type]
	for _, name := range r.Unsubscribe {
		if name == all {
			own.wildcard = false
			own.spread()
			for other, h := range own.held {
				if !h.named {
					delete(own.held, other)
					own.settle(other)
				}
			}
			continue
		}
		h := own.find(name)
		switch {
		case h == nil:
		case own.wildcard && h.named:
			// Whether everything has it in it the proxy cannot know: it is sent it anew, or
			// that it is not there.
			*h = held{known: s.view.Get(r.Type, name) == nil, parked: h.parked, origin: h.origin.asked()}
			own.unsettle(name)
		case own.wildcard && s.view.Get(r.Type, name) != nil:
		default:
			own.drop(name)
			own.settle(name)
		}
	}
}

// answer takes the answer to a response.
func (s *Stream) answer(now time.Time, r Request) []Effect {
	i := s.onTheWay(r)
	if i < 0 {
		return []Effect{Stale{r.Type, r.Nonce}}
	}
	answered := s.flight[i]
	s.flight = slices.Delete(s.flight, i, i+1)
	s.answered = max(s.answered, answered.nonce)
	var effects []Effect
	if r.Type == Cluster {
		effects = s.convict()
	}
	if r.Refused {
		return append(effects, s.refused(now, answered, r.Message)...)
	}
	return append(effects, s.acknowledged(now, answered)...)
}

// onTheWay finds the response that a request answers; -1 when there is none.
func (s *Stream) onTheWay(r Request) int {
	return slices.IndexFunc(s.flight, func(f *response) bool {
		return f.kind == r.Type && f.text == r.Nonce
	})
}

// acknowledged notes that the proxy has what a response brought.
func (s *Stream) acknowledged(now time.Time, r *response) []Effect {
	own := &s.types[r.kind]
	var has []*Resource
	for _, resource := range r.resources {
		h := own.find(resource.Name)
		current := h != nil && h.nonce == r.nonce && h.sent == resource
		if r.kind == Cluster && !current {
			continue // that it was taken away or replaced may be why the answer comes at all
		}
		if !s.stands(resource) {
			s.proofs.Prove(resource)
		}
		has = append(has, resource)
		if !current {
			continue // it was asked for anew, or no longer is
		}
		h.known, h.told, h.has, h.acknowledged = true, &resource.Version, resource, at(now)
		h.sent, h.alone = nil, false
		own.unsettle(resource.Name)
	}
	for _, name := range r.removed {
		h := own.find(name)
		if h == nil || h.nonce != r.nonce || !h.removing {
			continue
		}
		*h = held{named: h.named, parked: h.parked, origin: h.origin.asked()}
		if h.named {
			own.unsettle(name)
			h.known = true
		} else {
			s.touchRemoved(r.kind, name)
		}
	}
	if len(has) == 0 {
		return nil
	}
	return []Effect{Acked{has}}
}

// gone is the version of what a proxy knows not to be there.
var gone = Version{}

// unknown is the version of a route of which a proxy that comes back reports nothing: it may
// have a part of a response that it refused.
var unknown = Version{Hash: "unknown"}

// touchRemoved forgets a name that is gone, unless it came back meanwhile.
func (s *Stream) touchRemoved(t Type, name string) {
	own := &s.types[t]
	if s.view.Get(t, name) == nil {
		own.drop(name)
		own.settle(name)
		return
	}
	own.unsettle(name)
}

// refused finds out which resource of a response it was: the only one, or each is
// sent once more, alone.
func (s *Stream) refused(now time.Time, r *response, message string) []Effect {
	own := &s.types[r.kind]
	single := len(r.resources)+len(r.removed) == 1
	var effects []Effect
	for _, resource := range r.resources {
		h := own.find(resource.Name)
		if h == nil || h.nonce != r.nonce || h.sent != resource {
			continue
		}
		h.sent = nil
		own.unsettle(resource.Name)
		if single {
			h.park(resource, message, now)
			h.alone = false
			h.again = r.kind == Endpoints && h.known // its cluster may wait for them
			effects = append(effects, Rejected{resource, message})
			continue
		}
		// It may or may not have been applied.
		h.alone, h.again = true, true
	}
	for _, name := range r.removed {
		if h := own.find(name); h != nil && h.nonce == r.nonce {
			h.removing = false
			h.park(removal, message, now)
			own.unsettle(name)
		}
	}
	return effects
}
