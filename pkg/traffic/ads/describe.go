// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Stage says how far a resource is at a proxy.
type Stage string

// The stages.
const (
	// Confirmed: the proxy has what there is.
	Confirmed Stage = "Confirmed"
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

// State is how far one resource is.
type State struct {
	Type Type
	Name string
	// Has is what the proxy has confirmed, Wants what there is; zero when there is
	// neither.
	Has, Wants Version
	Stage      Stage
	// Why says what is waited for; empty when nothing is.
	Why string
	// Since is when a route or a removal began to wait.
	Since time.Time
}

// States of all that the proxy wants or has, by type and name.
func (s *Stream) States() []State {
	var states []State
	for t := range Type(types) {
		for _, name := range slices.Sorted(maps.Keys(s.types[t].held)) {
			states = append(states, s.state(Key{t, name}))
		}
	}
	return states
}

func (s *Stream) state(k Key) State {
	h := s.types[k.Type].held[k.Name]
	want := s.view.Get(k.Type, k.Name)
	if want == nil && h.named {
		want = s.missing(k)
	}
	state := State{Type: k.Type, Name: k.Name, Since: h.since.time()}
	if h.known {
		state.Has = h.version
	}
	if want != nil {
		state.Wants = want.Version
	}
	state.Stage, state.Why = s.stage(k, h, want)
	return state
}

func (s *Stream) stage(k Key, h *held, want *Resource) (Stage, string) {
	switch {
	case h.sent != nil:
		return OnTheWay, ""
	case h.removing || h.expelled:
		return Going, "the proxy has not confirmed the removal"
	case want == nil && h.known && h.version != gone:
		return Going, "a route may still name it"
	case want == nil:
		return Confirmed, "" // that there is none
	case h.parks(want):
		return Refused, "the proxy refuses " + want.Version.String()
	case h.known && h.current(want):
		return Confirmed, ""
	case k.Type == Route && !s.ready(want):
		return Held, fmt.Sprintf("endpoints of %v are not confirmed", s.unready(want))
	}
	return Queued, ""
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

// Unknown is how many names the proxy asks for that are not there, at most.
func (s *Stream) Unknown() (n int) {
	for t := range s.types {
		n += max(0, len(s.types[t].held)-len(s.view.Names(Type(t))))
	}
	return n
}
