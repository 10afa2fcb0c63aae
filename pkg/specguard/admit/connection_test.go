// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestConnectionsEnd(t *testing.T) {
	now := noon
	c := NewConnections(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), time.Minute, func() time.Time { return now })
	closes := func(connection context.Context) bool {
		req := httptest.NewRequest(http.MethodPost, "/", nil).WithContext(connection)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, req)
		return w.Header().Get("Connection") == "close"
	}
	a, b := c.Begin(t.Context(), nil), c.Begin(t.Context(), nil)
	if closes(a) || closes(b) {
		t.Error("a new connection was ended")
	}
	now = noon.Add(time.Minute - time.Nanosecond)
	if closes(a) || closes(b) {
		t.Error("ended too early")
	}
	now = noon.Add(2 * time.Minute)
	if !closes(a) || !closes(b) {
		t.Error("an old connection lives on")
	}
	if closes(c.Begin(t.Context(), nil)) {
		t.Error("a new connection was ended among old ones")
	}
	c.Drain()
	if !closes(c.Begin(t.Context(), nil)) {
		t.Error("a connection outlives the drain")
	}
}

func TestConnectionsDoNotEndTogether(t *testing.T) {
	c := NewConnections(http.NotFoundHandler(), time.Minute, func() time.Time { return noon })
	ends := map[time.Duration]int{}
	for range 1000 {
		end := c.Begin(t.Context(), nil).Value(endKey{}).(time.Time).Sub(noon)
		if end < time.Minute || end >= 2*time.Minute {
			t.Fatalf("a connection ends after %v", end)
		}
		ends[end.Truncate(6*time.Second)]++
	}
	for tenth, n := range ends {
		if n > 200 { // A hundred are expected, with a deviation of ten.
			t.Errorf("%d of 1000 connections end in the 6 s after %v", n, tenth)
		}
	}
}

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

func connect(t *testing.T, g *gate, from string, n int) (open []*fakeConn) {
	t.Helper()
	l := g.Listener.(*fakeListener)
	for range n {
		c := &fakeConn{from: from}
		l.conns = append(l.conns, c)
		if _, err := g.Accept(); err == nil {
			open = append(open, c)
		}
	}
	return open
}

func TestHoweverManyConnectionsSomebodyHoldsAnotherGetsIn(t *testing.T) {
	g := newGate(&fakeListener{}, NewMetrics())
	if n := len(connect(t, g, "10.0.0.1:1", maxConnectionsOfCaller+10)); n != maxConnectionsOfCaller {
		t.Errorf("one address has %d connections", n)
	}
	connect(t, g, "10.0.0.2:1", maxConnectionsOfCaller)
	connect(t, g, "10.0.0.3:1", maxConnections-2*maxConnectionsOfCaller)
	if g.total != maxConnections {
		t.Fatalf("%d connections", g.total)
	}
	api := connect(t, g, "10.0.0.9:1", 5)
	if len(api) != 5 {
		t.Fatal("the fourth address does not get in")
	}
	for _, c := range api {
		if c.closed {
			t.Error("the newcomer was evicted")
		}
	}
	if g.total != maxConnections || len(g.open["10.0.0.9"]) != 5 {
		t.Errorf("%d connections, %d of the newcomer", g.total, len(g.open["10.0.0.9"]))
	}
	if n := testutil.ToFloat64(g.metrics.connectionsRefused.WithLabelValues("caller")); n != 10 {
		t.Errorf("%v refused", n)
	}
	if n := testutil.ToFloat64(g.metrics.connectionsRefused.WithLabelValues("evicted")); n != 5 {
		t.Errorf("%v evicted", n)
	}
}

func TestAClosedConnectionMakesRoom(t *testing.T) {
	g := newGate(&fakeListener{}, NewMetrics())
	l := g.Listener.(*fakeListener)
	l.conns = []*fakeConn{{from: "a:1"}}
	c, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // net/http may close twice.
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if g.total != 0 || len(g.open) != 0 || testutil.ToFloat64(g.metrics.connections) != 0 {
		t.Errorf("%d connections of %d addresses are left", g.total, len(g.open))
	}
}
