// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"log/slog"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// gate accepts connections and bounds them, in all and of one address. Who
// comes when all places are taken gets that of one of the address that has
// most; so however many connections somebody holds open, another address
// still gets in.
type gate struct {
	listener net.Listener
	metrics  *Metrics
	log      *slog.Logger
	turns    *turns
	limits   Limits

	mu          sync.Mutex
	closed      bool
	handshakes  pool
	established pool
}

// gated is an open connection.
type gated struct {
	net.Conn
	gate *gate
	from string
	in   *pool // nil: no longer counted; under the gate's lock

	once sync.Once
	gone chan struct{} // closed with the connection

	handshake *handshake // nil before and after; see handshake.go
	early     []byte     // what was received and not read yet
}

func newGate(listener net.Listener, turns *turns, limits Limits, metrics *Metrics, log *slog.Logger) *gate {
	return &gate{
		listener: listener, metrics: metrics, log: log, turns: turns, limits: limits,
		handshakes: newPool(limits.UnderWay), established: newPool(limits.Connections),
	}
}

// accept gives the next connection that has a place among the handshakes.
func (g *gate) accept() (*gated, error) {
	for {
		conn, err := g.listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &gated{Conn: conn, gate: g, from: HostOf(conn.RemoteAddr().String()), gone: make(chan struct{})}
		if g.begin(c) {
			return c, nil
		}
		_ = conn.Close() // The caller sees that it was not served.
	}
}

// begin gives a new connection its place, if it gets one.
func (g *gate) begin(c *gated) bool {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return false
	}
	if g.handshakes.count(c.from)+g.established.count(c.from) >= g.limits.OfCaller {
		g.mu.Unlock()
		g.refused(c, g.metrics.connectionsRefused, "caller")
		return false
	}
	victim, ok := g.handshakes.add(c)
	g.mu.Unlock()
	g.outcome(c, victim, ok, g.metrics.handshakesRefused)
	return ok
}

// establish moves a connection whose handshake is done to the others. It fails
// when there is no place for it, or the connection has been closed.
func (g *gate) establish(c *gated) bool {
	g.mu.Lock()
	if c.in != &g.handshakes {
		g.mu.Unlock()
		return false
	}
	g.handshakes.remove(c)
	victim, ok := g.established.add(c)
	g.metrics.connections.Set(float64(g.established.total))
	g.mu.Unlock()
	g.outcome(c, victim, ok, g.metrics.connectionsRefused)
	return ok
}

// outcome closes a victim, and counts who got no place or lost it.
func (g *gate) outcome(c, victim *gated, ok bool, counter *prometheus.CounterVec) {
	if victim != nil {
		g.refused(victim, counter, "evicted")
		_ = victim.Close() // Its caller sees that the connection is gone.
	}
	if !ok {
		g.refused(c, counter, "caller")
	}
}

func (g *gate) refused(c *gated, counter *prometheus.CounterVec, reason string) {
	counter.WithLabelValues(reason).Inc()
	// Anybody can cause any number of these.
	g.log.Debug("tls.connection.refused", "from", c.from, "reason", reason)
}

// forget takes a connection out of its pool; false: it had no place any more.
func (g *gate) forget(c *gated) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.in == nil {
		return false
	}
	c.in.remove(c)
	g.metrics.connections.Set(float64(g.established.total))
	return true
}

// close ends the handshakes that are under way and lets no further one begin.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	var all []*gated
	for _, conns := range g.handshakes.of {
		for c := range conns {
			all = append(all, c)
		}
	}
	g.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// Close implements net.Conn.
func (c *gated) Close() error {
	c.once.Do(func() {
		close(c.gone)
		c.gate.forget(c)
	})
	return c.Conn.Close()
}

// pool is a bounded set of connections by address. It is guarded by the gate's
// lock.
type pool struct {
	limit int
	total int
	of    map[string]map[*gated]struct{}
}

func newPool(limit int) pool { return pool{limit: limit, of: map[string]map[*gated]struct{}{}} }

func (p *pool) count(from string) int { return len(p.of[from]) }

// add takes a connection in. When all places are taken, a connection of the
// address that has most is the victim, which is out; if c's own address has as
// many as any, c itself does not get in.
func (p *pool) add(c *gated) (victim *gated, ok bool) {
	if p.total >= p.limit {
		largest := c.from
		for from, conns := range p.of {
			if len(conns) > len(p.of[largest]) {
				largest = from
			}
		}
		if largest == c.from {
			return nil, false
		}
		for victim = range p.of[largest] {
			break
		}
		p.remove(victim)
	}
	if p.of[c.from] == nil {
		p.of[c.from] = map[*gated]struct{}{}
	}
	p.of[c.from][c] = struct{}{}
	p.total++
	c.in = p
	return victim, true
}

// remove takes a connection out that is in.
func (p *pool) remove(c *gated) {
	delete(p.of[c.from], c)
	if len(p.of[c.from]) == 0 {
		delete(p.of, c.from)
	}
	p.total--
	c.in = nil
}
