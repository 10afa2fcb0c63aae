// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// Connected is what is known about a proxy that is.
type Connected struct {
	identity.Proxy
	// Node, Kind and Version are what it says about itself. Kind is that of the program, such as envoy.
	Node    string
	Kind    string
	Version [3]uint64
	// Since is when its stream began.
	Since time.Time
	// Blocked says that it does not read its stream, and Waiting that it has not
	// asked yet, or waits for its turn to start; nothing more is known then.
	Blocked, Waiting bool
	// Counts are how many resources are in each stage.
	Counts map[ads.Stage]int
	// Resources are there if the query asks for them.
	Resources []ads.State
	// Unserved is what the proxy asks for and cannot have, if the query asks for that.
	Unserved []string
}

// Query says which proxies are asked about themselves, and for what.
type Query struct {
	// Keep says which proxies are wanted, Of which of their resources; nil is all.
	Keep func(identity.Proxy) bool
	Of   func(ads.Key) bool
	// Details are the resources themselves, and not only how many there are.
	Details bool
	// Unserved is what proxies ask for and cannot have.
	Unserved bool
	// After is where the page before ended: only proxies behind that pod are wanted.
	After Place
	// Limit is how many proxies are asked; 0 is all. There may be a few more, since the
	// streams of one pod stay together.
	Limit int
}

// Place in the order of the proxies.
type Place struct{ Namespace, Pod string }

// Compare is negative when a place comes before another.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Namespace, other.Namespace), cmp.Compare(p.Pod, other.Pod))
}

func place(p identity.Proxy) Place { return Place{p.Namespace, p.Pod} }

// patience is how long a session is waited for that is busy with its proxy.
const patience = 200 * time.Millisecond

// Proxies are all that are connected, those without a view included, by namespace
// and pod. keep says which ones are wanted.
func (s *Server) Proxies(ctx context.Context, keep func(identity.Proxy) bool) []Connected {
	proxies, _ := s.Page(ctx, Query{Keep: keep, Details: true})
	return proxies
}

// Page of the proxies that are connected, by namespace, pod and age; more says that
// others come behind it.
func (s *Server) Page(ctx context.Context, q Query) (page []Connected, more bool) {
	sessions, more := s.chosen(q)
	if q.Of == nil {
		q.Of = func(ads.Key) bool { return true }
	}
	// At once: each that is busy, or waits for its start, costs all of the patience.
	page = make([]Connected, len(sessions))
	var asked sync.WaitGroup
	for i, own := range sessions {
		asked.Go(func() {
			page[i] = own.ask(ctx, q)
			if q.Unserved && own.unserved != nil {
				page[i].Unserved = own.unserved()
			}
		})
	}
	asked.Wait()
	return page, more
}

// chosen are the sessions of a page.
func (s *Server) chosen(q Query) (page []*session, more bool) {
	s.mu.Lock()
	for _, of := range s.pods {
		for _, own := range of.sessions {
			behind := q.After == Place{} || place(own.proxy).Compare(q.After) > 0
			if behind && (q.Keep == nil || q.Keep(own.proxy)) {
				page = append(page, own)
			}
		}
	}
	s.mu.Unlock()
	slices.SortFunc(page, func(a, b *session) int {
		return cmp.Or(place(a.proxy).Compare(place(b.proxy)), a.since.Compare(b.since))
	})
	end := q.Limit
	if end <= 0 || end >= len(page) {
		return page, false
	}
	for end < len(page) && place(page[end].proxy) == place(page[end-1].proxy) {
		end++
	}
	return page[:end], end < len(page)
}

// ask the session about itself.
func (s *session) ask(ctx context.Context, q Query) Connected {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return s.describe(q)
	case <-ctx.Done():
		known := s.known()
		known.Blocked = s.sending.Load() != nil
		known.Waiting = !known.Blocked
		return known
	}
}

// known is what needs no answer of the session.
func (s *session) known() Connected {
	n := s.node.Load()
	return Connected{Proxy: s.proxy, Node: n.id, Kind: n.kind, Version: n.version, Since: s.since}
}

func (s *session) describe(q Query) Connected {
	known := s.known()
	if known.Waiting = s.decide == nil; known.Waiting { // it ends before it has begun
		return known
	}
	known.Counts = s.decide.Count(q.Of)
	if q.Details {
		known.Resources = s.decide.States(q.Of)
	}
	return known
}
