// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"net"
	"sync"
)

// Bounds of the open connections; one that was idle holds about 30 KiB. An API
// server opens as many as it has calls under way.
const (
	maxConnections         = 1536
	maxConnectionsOfCaller = 512
)

// gate is a listener that bounds the connections, at all and of one address.
// Who comes when all is full takes the place of one of the address that has
// most; so however many connections somebody holds open, another address
// still gets in.
type gate struct {
	net.Listener
	metrics *Metrics

	mu    sync.Mutex
	total int
	open  map[string]map[*gated]struct{}
}

// gated is an open connection.
type gated struct {
	net.Conn
	gate *gate
	from string
	once sync.Once
}

func newGate(listener net.Listener, metrics *Metrics) *gate {
	return &gate{Listener: listener, metrics: metrics, open: map[string]map[*gated]struct{}{}}
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &gated{Conn: conn, gate: g, from: hostOf(conn.RemoteAddr().String())}
		victim, ok := g.admit(c)
		if victim != nil {
			g.metrics.connectionsRefused.WithLabelValues("evicted").Inc()
			_ = victim.Close() // Its caller sees that the connection is gone.
		}
		if ok {
			return c, nil
		}
		g.metrics.connectionsRefused.WithLabelValues("caller").Inc()
		_ = conn.Close() // The caller sees that it was not served.
	}
}

// admit counts a connection, or says no. victim has to make room for it.
func (g *gate) admit(c *gated) (victim *gated, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open[c.from]) >= maxConnectionsOfCaller {
		return nil, false
	}
	if g.total >= maxConnections {
		largest := c.from
		for from, conns := range g.open {
			if len(conns) > len(g.open[largest]) {
				largest = from
			}
		}
		if largest == c.from {
			return nil, false
		}
		for victim = range g.open[largest] {
			break
		}
		g.forget(victim)
	}
	if g.open[c.from] == nil {
		g.open[c.from] = map[*gated]struct{}{}
	}
	g.open[c.from][c] = struct{}{}
	g.total++
	g.metrics.connections.Set(float64(g.total))
	return victim, true
}

// forget is called with the lock held; a second time it does nothing.
func (g *gate) forget(c *gated) {
	conns := g.open[c.from]
	if _, ok := conns[c]; !ok {
		return
	}
	delete(conns, c)
	if len(conns) == 0 {
		delete(g.open, c.from)
	}
	g.total--
	g.metrics.connections.Set(float64(g.total))
}

// Close implements net.Conn.
func (c *gated) Close() error {
	c.once.Do(func() {
		c.gate.mu.Lock()
		defer c.gate.mu.Unlock()
		c.gate.forget(c)
	})
	return c.Conn.Close()
}
