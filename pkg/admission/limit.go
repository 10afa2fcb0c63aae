// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

const (
	// maxBytesInFlight bounds the buffers of bodies that are in memory at once,
	// beside their number: a few large objects must not cost what many small
	// ones do. One caller's share is half of it, so that whoever sends slowly or
	// a lot cannot have the API server's reviews shed.
	maxBytesInFlight = 32 << 20
	maxBytesOfCaller = maxBytesInFlight / 2
)

// Limits bounds the work in progress of all handlers of one server. Nothing
// ever queues: the API server waits two seconds at most and retries nothing, so
// a review that would have to wait is better allowed at once and counted.
type Limits struct {
	ofCaller int // reviews

	mu      sync.Mutex
	bytes   int64
	callers map[string]*caller
}

// caller is what one address has in work.
type caller struct {
	reviews int
	bytes   int64
}

// NewLimits lets a caller, which is an IP address, have that many reviews in
// work at once. How many callers there are is bounded by the connections of
// NewServer.
func NewLimits(reviewsOfCaller int) *Limits {
	return &Limits{ofCaller: reviewsOfCaller, callers: map[string]*caller{}}
}

// place is one review's share of the limits.
type place struct {
	limits *Limits
	from   string
	who    *caller
	bytes  int64
}

// enter takes a place; nil when its caller has none left.
func (l *Limits) enter(remoteAddress string) *place {
	from := tlsport.HostOf(remoteAddress)
	l.mu.Lock()
	defer l.mu.Unlock()
	who := l.callers[from]
	if who == nil {
		who = &caller{}
		l.callers[from] = who
	}
	if who.reviews >= l.ofCaller {
		return nil
	}
	who.reviews++
	return &place{limits: l, from: from, who: who}
}

// grow takes n more bytes; false when that would be too many.
func (p *place) grow(n int64) bool {
	p.limits.mu.Lock()
	defer p.limits.mu.Unlock()
	if p.limits.bytes+n > maxBytesInFlight || p.who.bytes+n > maxBytesOfCaller {
		return false
	}
	p.limits.bytes += n
	p.who.bytes += n
	p.bytes += n
	return true
}

// leave gives everything back.
func (p *place) leave() {
	p.limits.mu.Lock()
	defer p.limits.mu.Unlock()
	p.limits.bytes -= p.bytes
	p.who.bytes -= p.bytes
	if p.who.reviews--; p.who.reviews == 0 {
		delete(p.limits.callers, p.from)
	}
}
