// SPDX-License-Identifier: Apache-2.0

package door

import "sync"

// Bounds are of requests at once.
type Bounds struct {
	// OfAddress bounds those of one address, before it is known whose they are: an ingress is one address.
	// OfUser bounds those of one user.
	OfAddress, OfUser int
	// StreamsOfAddress bounds the streams of events of one address: each has a connection of its own, and those that are
	// left are for requests.
	StreamsOfAddress int
}

// DefaultBounds let a page of a console ask for all of its parts at once.
func DefaultBounds() Bounds { return Bounds{OfAddress: 128, OfUser: 32, StreamsOfAddress: 128} }

// places count the requests under way, by name, up to a limit of each name.
type places struct {
	limit int

	mu    sync.Mutex
	taken map[string]int
}

func newPlaces(limit int) *places { return &places{limit: limit, taken: map[string]int{}} }

// enter takes a place; false where all of the name are taken. Each place that is taken has to be left.
func (p *places) enter(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[name] >= p.limit {
		return false
	}
	p.taken[name]++
	return true
}

// leave gives a place back.
func (p *places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[name]--; p.taken[name] == 0 {
		delete(p.taken, name)
	}
}
