// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"hash/maphash"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connectionAge is when a connection is closed at the earliest, and
	// connectionJitter how much later at most. API servers keep connections for
	// as long as they can, so without this a new replica would get no work.
	connectionAge    = 60 * time.Second
	connectionJitter = 60 * time.Second
	// maxTracked bounds the memory about connections; API servers open a few.
	maxTracked = 4096
)

// Connections ends connections that are old, and all of them while draining.
// It ends them after an answer, by "Connection: close", so no call is lost.
type Connections struct {
	next     http.Handler
	now      func() time.Time
	seed     maphash.Seed
	draining atomic.Bool

	mu    sync.Mutex
	since map[string]time.Time
}

// NewConnections wraps a handler.
func NewConnections(next http.Handler, now func() time.Time) *Connections {
	return &Connections{next: next, now: now, seed: maphash.MakeSeed(), since: map[string]time.Time{}}
}

// Drain makes every further answer the last one on its connection.
func (c *Connections) Drain() { c.draining.Store(true) }

// Draining says that Drain was called.
func (c *Connections) Draining() bool { return c.draining.Load() }

// ServeHTTP implements http.Handler.
func (c *Connections) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	// A remote address is one connection, as there is no HTTP/2 here.
	if c.Draining() || c.old(req.RemoteAddr) {
		w.Header().Set("Connection", "close")
	}
	c.next.ServeHTTP(w, req)
}

// old reports whether a connection has lived long enough, and forgets it then.
func (c *Connections) old(remote string) bool {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	born, ok := c.since[remote]
	if !ok {
		c.makeRoom(now)
		c.since[remote] = now
		return false
	}
	if now.Sub(born) < c.lifetime(remote) {
		return false
	}
	delete(c.since, remote)
	return true
}

// lifetime differs from connection to connection, so that they do not end together.
func (c *Connections) lifetime(remote string) time.Duration {
	return connectionAge + time.Duration(maphash.String(c.seed, remote)%uint64(connectionJitter))
}

// makeRoom forgets connections that the client ended without a word. One that
// is forgotten and still lives merely counts as new.
func (c *Connections) makeRoom(now time.Time) {
	if len(c.since) < maxTracked {
		return
	}
	for remote, born := range c.since {
		if now.Sub(born) >= connectionAge+connectionJitter {
			delete(c.since, remote)
		}
	}
	if len(c.since) >= maxTracked {
		clear(c.since)
	}
}
