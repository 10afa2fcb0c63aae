// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// DefaultConnectionAge is when a connection ends at the earliest, and after
// twice as long it has ended. API servers keep connections for as long as they
// can, so without this a new replica would get no work.
const DefaultConnectionAge = time.Minute

// Connections ends connections that are old, and all of them while draining.
// It ends them after an answer, by "Connection: close", so no call is lost.
type Connections struct {
	next     http.Handler
	age      time.Duration
	now      func() time.Time
	draining atomic.Bool
}

// NewConnections wraps a handler. age is the shortest life of a connection; each
// one's is up to twice as long, so that they do not end together.
func NewConnections(next http.Handler, age time.Duration, now func() time.Time) *Connections {
	return &Connections{next: next, age: age, now: now}
}

// endKey finds the end of a connection's life in the context of its requests.
type endKey struct{}

// Begin is for http.Server.ConnContext: it notes when a connection ends.
func (c *Connections) Begin(ctx context.Context, _ net.Conn) context.Context {
	jitter := time.Duration(rand.Int64N(int64(c.age)))
	return context.WithValue(ctx, endKey{}, c.now().Add(c.age+jitter))
}

// Drain makes every further answer the last one on its connection.
func (c *Connections) Drain() { c.draining.Store(true) }

// ServeHTTP implements http.Handler.
func (c *Connections) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	end, ok := req.Context().Value(endKey{}).(time.Time)
	if c.draining.Load() || (ok && !c.now().Before(end)) {
		w.Header().Set("Connection", "close")
	}
	c.next.ServeHTTP(w, req)
}
