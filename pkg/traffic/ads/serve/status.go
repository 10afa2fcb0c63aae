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
	// Node and Version are what it says about itself.
	Node    string
	Version [3]uint64
	// Blocked says that it does not read what it is sent; nothing else is known then.
	Blocked   bool
	Resources []ads.State
}

// patience is how long a session is waited for that is busy with its proxy.
const patience = 200 * time.Millisecond

// Proxies are all that are connected, those without a view included, by namespace
// and pod. keep says which ones are wanted.
func (s *Server) Proxies(ctx context.Context, keep func(identity.Proxy) bool) []Connected {
	s.mu.Lock()
	var sessions []*session
	for _, of := range s.sessions {
		for _, own := range of {
			if keep(own.proxy) {
				sessions = append(sessions, own)
			}
		}
	}
	s.mu.Unlock()
	// At once: each that is busy, or waits for its start, costs all of the patience.
	proxies := make([]Connected, len(sessions))
	var asked sync.WaitGroup
	for i, own := range sessions {
		asked.Go(func() { proxies[i] = own.ask(ctx) })
	}
	asked.Wait()
	slices.SortFunc(proxies, func(a, b Connected) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return proxies
}

// ask the session about itself.
func (s *session) ask(ctx context.Context) Connected {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer := make(chan Connected, 1)
	select {
	case s.asked <- answer:
		return <-answer
	case <-ctx.Done():
		return Connected{Proxy: s.proxy, Blocked: s.sending.Load() != nil}
	}
}

func (s *session) describe() Connected {
	return Connected{Proxy: s.proxy, Node: s.node.id, Version: s.node.version, Resources: s.decide.States()}
}
