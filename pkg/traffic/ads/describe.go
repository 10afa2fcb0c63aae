// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Stage says how far a resource is at a proxy.
type Stage string

// The stages.
const (
	// Acknowledged: the proxy has what there is.
	Acknowledged Stage = "Acknowledged"
	// OnTheWay: it was sent, and there is no answer yet.
	OnTheWay Stage = "OnTheWay"
	// Going: its removal was sent, or waits for routes that name it.
	Going Stage = "Going"
	// Refused: the proxy does not take what there is, and keeps what it has.
	Refused Stage = "Refused"
	// Held: a route waits for endpoints.
	Held Stage = "Held"
	// Queued: it is sent when others were answered.
	Queued Stage = "Queued"
)

// Stages are all of them, those first that somebody has to look at.
func Stages() []Stage { return []Stage{Refused, Held, Going, OnTheWay, Queued, Acknowledged} }

// State is how far one resource is.
type State struct {
	Type Type
	Name string
	// Has is what the proxy has acknowledged, Sent what is on the way, Wants what there is;
	// zero when there is none.
	Has, Sent, Wants Version
	Stage            Stage
	// Why says what is waited for, or what the proxy says against it; empty when there is
	// nothing to say.
	Why string
	// Since is when the stage began; zero when that is not known.
	Since time.Time
}

// States of all that the proxy wants or has, if of wants them, by type and name.
func (s *Stream) States(of func(Key) bool) []State {
	var states []State
	for t := range Type(types) {
		for _, name := range s.types[t].names(func(name string) bool { return of(Key{t, name}) }) {
			states = append(states, s.state(Key{t, name}))
		}
	}
	return states
}

// Count is how many of them are in each stage. It costs much less than to list them.
func (s *Stream) Count(of func(Key) bool) map[Stage]int {
	counts := map[Stage]int{}
	for t := range Type(types) {
		for name, h := range s.types[t].all {
			if k := (Key{t, name}); of(k) {
				counts[s.stage(k, h, s.want(k, h))]++
			}
		}
	}
	return counts
}

// want is what a proxy should have; nil when it is that there is nothing.
func (s *Stream) want(k Key, h *held) *Resource {
	want := s.view.Get(k.Type, k.Name)
	if want == nil && h.named && !s.keeps(k, h) {
		return s.missing(k)
	}
	return want
}

func (s *Stream) state(k Key) State {
	own, _ := s.types[k.Type].peek(k.Name)
	h := &own
	want := s.want(k, h)
	state := State{Type: k.Type, Name: k.Name, Stage: s.stage(k, h, want)}
	if h.known && h.version() != unknown {
		state.Has = h.version()
	}
	if h.sent != nil {
		state.Sent = h.sent.Version
	}
	if want != nil {
		state.Wants = want.Version
	}
	state.Why, state.Since = s.why(k, state.Stage, h, want)
	return state
}

func (s *Stream) stage(k Key, h *held, want *Resource) Stage {
	switch {
	case h.sent != nil:
		return OnTheWay
	case h.removing || h.expelled:
		return Going
	case want == nil && h.known && h.version() != gone:
		return Going
	case want == nil:
		return Acknowledged // that there is none
	case h.parks(want):
		return Refused
	case h.known && h.current(want):
		return Acknowledged
	case k.Type == Route && !s.ready(want):
		return Held
	}
	return Queued
}

// why a resource is in a stage, and since when.
func (s *Stream) why(k Key, stage Stage, h *held, want *Resource) (string, time.Time) {
	switch stage {
	case OnTheWay:
		return s.unanswered(h)
	case Going:
		if h.removing {
			text, since := s.unanswered(h)
			return cmp.Or(text, "the proxy has not acknowledged the removal"), since
		}
		if h.expelled {
			return "its removal is about to be sent", h.since.time()
		}
		if k.Type == Route {
			return "the proxy still wants it: connections of before may be open", h.acknowledged.time()
		}
		return "a route may still name it", h.since.time()
	case Refused:
		refusal := h.refusal(want)
		return refusal.message, refusal.at.time()
	case Held:
		return fmt.Sprintf("endpoints of %v are not acknowledged", s.unready(want)), h.since.time()
	case Acknowledged:
		return "", h.acknowledged.time()
	case Queued:
		return "the version before has no answer yet", time.Time{}
	}
	return "", time.Time{}
}

// unanswered says whether a response is overdue, and when it was sent.
func (s *Stream) unanswered(h *held) (string, time.Time) {
	i := slices.IndexFunc(s.flight, func(r *response) bool { return r.nonce == h.nonce })
	if i < 0 {
		return "", time.Time{}
	}
	if s.flight[i].told {
		return "the proxy does not answer", s.flight[i].at
	}
	return "", s.flight[i].at
}

// unready are the clusters of a route for which it waits.
func (s *Stream) unready(route *Resource) []string {
	return slices.DeleteFunc(slices.Clone(route.Clusters), func(name string) bool {
		return s.ready(&Resource{Clusters: []string{name}})
	})
}

// Settled says that the proxy has asked for listeners, and that nothing is on the way
// or waits.
func (s *Stream) Settled() bool {
	for t := range s.types {
		if len(s.types[t].unsettled) > 0 {
			return false
		}
	}
	return s.types[Listener].open && len(s.flight) == 0
}

// Unknown is how many names the stream keeps on top of as many as there are. It costs the same
// whatever the stream keeps.
func (s *Stream) Unknown() (n int) {
	for t := range s.types {
		n += max(0, s.types[t].count()-len(s.view.Names(Type(t))))
	}
	return n
}

// Strange counts the names that the proxy asks for, was never given, and that are not there. A
// proxy that loses thousands of Services at once has none of these.
func (s *Stream) Strange() (n int) {
	for t := range s.types {
		for name, h := range s.types[t].all {
			if h.origin == strange && s.view.Get(Type(t), name) == nil {
				n++
			}
		}
	}
	return n
}

// Answers says that a request is the answer to a response that is on the way, and nothing else.
func (s *Stream) Answers(r Request) bool {
	return len(r.Subscribe)+len(r.Unsubscribe) == 0 && s.onTheWay(r) >= 0
}
