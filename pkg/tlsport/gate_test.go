// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"fmt"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"
)

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (f *fakeConn) RemoteAddr() net.Addr { return addr(f.from) }
func (f *fakeConn) Close() error         { f.closed = true; return nil }

type addr string

func (a addr) Network() string { return "tcp" }
func (a addr) String() string  { return string(a) }

// fakeListener accepts what is put into it.
type fakeListener struct {
	net.Listener
	conns []*fakeConn
}

func (f *fakeListener) Accept() (net.Conn, error) {
	if len(f.conns) == 0 {
		return nil, net.ErrClosed
	}
	c := f.conns[0]
	f.conns = f.conns[1:]
	return c, nil
}

func newFakeGate() *gate {
	return newGate(&fakeListener{}, newTurns(1), limits, NewMetrics("test"), quiet())
}

// connect lets n connections of an address begin their handshakes.
func connect(g *gate, from string, n int) (begun []*gated) {
	l := g.listener.(*fakeListener)
	for range n {
		l.conns = append(l.conns, &fakeConn{from: from})
		if c, err := g.accept(); err == nil {
			begun = append(begun, c)
		}
	}
	return begun
}

// finish ends handshakes well.
func finish(g *gate, begun []*gated) (established []*gated) {
	for _, c := range begun {
		if g.establish(c) {
			established = append(established, c)
		}
	}
	return established
}

func wantOpen(t *testing.T, conns []*gated, n int) {
	t.Helper()
	open := 0
	for _, c := range conns {
		if !c.Conn.(*fakeConn).closed {
			open++
		}
	}
	if open != n {
		t.Errorf("%d of %d connections are open, want %d", open, len(conns), n)
	}
}

func wantCount(t *testing.T, counter *prometheus.CounterVec, reason string, n float64) {
	t.Helper()
	if got := testutil.ToFloat64(counter.WithLabelValues(reason)); got != n {
		t.Errorf("%v counted as %s, want %v", got, reason, n)
	}
}

func TestHoweverManyConnectionsSomebodyHoldsAnotherGetsIn(t *testing.T) {
	g := newFakeGate()
	if n := len(finish(g, connect(g, "10.0.0.1:1", limits.OfCaller+10))); n != limits.OfCaller {
		t.Errorf("one address has %d connections", n)
	}
	finish(g, connect(g, "10.0.0.2:1", limits.OfCaller))
	finish(g, connect(g, "10.0.0.3:1", limits.Connections-2*limits.OfCaller))
	if g.established.total != limits.Connections {
		t.Fatalf("%d connections", g.established.total)
	}
	api := finish(g, connect(g, "10.0.0.9:1", 5))
	if len(api) != 5 {
		t.Fatal("the fourth address does not get in")
	}
	wantOpen(t, api, 5)
	if g.established.total != limits.Connections || g.established.count("10.0.0.9") != 5 {
		t.Errorf("%d connections, %d of the newcomer", g.established.total, g.established.count("10.0.0.9"))
	}
	wantCount(t, g.metrics.connectionsRefused, "caller", 10)
	wantCount(t, g.metrics.connectionsRefused, "evicted", 5)
}

func TestHoweverManyHandshakesSomebodyBeginsAnotherGetsInAndNoConnectionIsDisplaced(t *testing.T) {
	g := newFakeGate()
	used := finish(g, connect(g, "10.0.0.9:1", 20))
	var flood []*gated
	for n := range 8 {
		flood = append(flood, connect(g, fmt.Sprintf("10.0.1.%d:1", n), limits.OfCaller)...)
	}
	if g.handshakes.total != limits.UnderWay {
		t.Fatalf("%d handshakes", g.handshakes.total)
	}
	api := connect(g, "10.0.0.9:1", 20)
	connect(g, "10.0.2.1:1", limits.OfCaller)
	wantOpen(t, used, 20)
	wantOpen(t, api, 20)
	wantOpen(t, finish(g, api), 20)
	open := 0
	for _, c := range flood {
		if !c.Conn.(*fakeConn).closed {
			open++
		}
	}
	if all := open + len(api) + g.handshakes.count("10.0.2.1"); all != limits.UnderWay {
		t.Errorf("%d handshakes", all)
	}
	// Of the newcomers' shares: eight addresses have them all, the ninth as many as any.
	if n := g.handshakes.count("10.0.2.1"); n < (limits.UnderWay-20)/9 {
		t.Errorf("the last address has %d handshakes", n)
	}
}

func TestAnEvictedHandshakeIsNotEstablished(t *testing.T) {
	g := newFakeGate()
	first := connect(g, "10.0.0.1:1", limits.OfCaller)
	connect(g, "10.0.0.2:1", limits.OfCaller)
	connect(g, "10.0.0.3:1", 1)
	g.close()
	for _, c := range first {
		if g.establish(c) {
			t.Fatal("a closed connection was established")
		}
	}
	if n := len(connect(g, "10.0.0.4:1", 1)); n != 0 {
		t.Error("a handshake began after the end")
	}
	if g.handshakes.total != 0 || len(g.handshakes.of) != 0 {
		t.Errorf("%d handshakes of %d addresses are left", g.handshakes.total, len(g.handshakes.of))
	}
}

func TestAClosedConnectionMakesRoom(t *testing.T) {
	tests := map[string]func(*gate, *gated){
		"during its handshake": func(*gate, *gated) {},
		"after its handshake":  func(g *gate, c *gated) { finish(g, []*gated{c}) },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			g := newFakeGate()
			c := connect(g, "a:1", 1)[0]
			prepare(g, c)
			for range 2 { // net/http may close twice.
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range []pool{g.handshakes, g.established} {
				if p.total != 0 || len(p.of) != 0 {
					t.Errorf("%d connections of %d addresses are left", p.total, len(p.of))
				}
			}
			if n := testutil.ToFloat64(g.metrics.connections); n != 0 {
				t.Errorf("%v connections are counted", n)
			}
		})
	}
}

// The pool against a twin that counts from scratch.
func TestPoolsAreFair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPool(rapid.IntRange(1, 6).Draw(rt, "limit"))
		var in []*gated
		count := func(from string) (n int) {
			for _, c := range in {
				if c.from == from {
					n++
				}
			}
			return n
		}
		without := func(c *gated) (out []*gated) {
			for _, other := range in {
				if other != c {
					out = append(out, other)
				}
			}
			return out
		}
		addresses := []string{"a", "b", "c"}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if len(in) > 0 && rapid.IntRange(0, 3).Draw(rt, "remove") == 0 {
				c := rapid.SampledFrom(in).Draw(rt, "which")
				p.remove(c)
				in = without(c)
				continue
			}
			c := &gated{from: rapid.SampledFrom(addresses).Draw(rt, "from")}
			most := 0
			for _, a := range addresses {
				most = max(most, count(a))
			}
			full, own := len(in) == p.limit, count(c.from)
			victim, ok := p.add(c)
			if want := !full || own < most; ok != want {
				rt.Fatalf("got in: %v; full: %v, own %d, most %d", ok, full, own, most)
			}
			if (victim != nil) != (ok && full) {
				rt.Fatalf("victim %v, got in: %v, full: %v", victim != nil, ok, full)
			}
			if victim != nil {
				if count(victim.from) != most || victim.in != nil {
					rt.Fatalf("the victim is of an address with %d, another has %d", count(victim.from), most)
				}
				in = without(victim)
			}
			if ok {
				in = append(in, c)
			}
			if p.total != len(in) || p.total > p.limit {
				rt.Fatalf("counts %d of %d, holds %d", p.total, p.limit, len(in))
			}
		}
	})
}
