// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// shopServer serves the three ways to order at one port, until ctx is done with the last answers.
func shopServer(ctx context.Context, t *testing.T, refuses func(*http.Request) bool) *httptest.Server {
	t.Helper()
	v, err := newVisitors(visitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	inner := lastAnswers(ctx, handler(ctx, config{Name: "pay", Version: "v1"}, v))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses(r) {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	server.Config.Protocols = protocols()
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// What fails one way fails no order that goes another way.
func TestOrdersByEachProtocolAreCountedApart(t *testing.T) {
	var refused atomic.Value
	refused.Store("nothing")
	shop := shopServer(t.Context(), t, func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, refused.Load().(string)) }) //nolint:forcetypeassert // it is stored above
	v, err := newVisitors(visitConfig{URL: shop.URL, Rate: 100, CallRate: 100, SocketRate: 100})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.run(ctx) }()
	until(t, v, func(s told) bool {
		return s.Answered["v1"] > 3 && s.Calls.Answered["v1"] > 3 && s.Sockets.Answered["v1"] > 2*socketOrders
	})
	refused.Store(callPath)
	until(t, v, func(s told) bool { return s.Calls.Failed > 3 })
	refused.Store(socketPath)
	until(t, v, func(s told) bool { return s.Sockets.Failed > 3 })
	refused.Store("nothing")
	before := v.report()
	until(t, v, func(s told) bool {
		return s.Calls.Answered["v1"] > before.Calls.Answered["v1"]+3 && s.Sockets.Answered["v1"] > before.Sockets.Answered["v1"]+3
	})
	cancel()
	<-ended
	s := v.report()
	if s.Failed > 0 || s.Started != s.Answered["v1"] {
		t.Errorf("of the orders by POST %d failed: %q", s.Failed, s.Failures)
	}
	for kind, of := range map[string]*visits{"calls": s.Calls, "sockets": s.Sockets} {
		if of.Started != of.Answered["v1"]+of.Failed || of.Settled != of.Started {
			t.Errorf("%s add up to something else: %+v", kind, of)
		}
	}
	if !strings.Contains(s.Calls.Failures[0], codes.Unavailable.String()) || !strings.Contains(s.Sockets.Failures[0], "bad status") {
		t.Errorf("calls failed with %q, sockets with %q", s.Calls.Failures[0], s.Sockets.Failures[0])
	}
}

// A WebSocket is used again, and one is the last that the shop has ended, or that was idle.
func TestAWebSocketIsKeptUntilTheShopEndsIt(t *testing.T) {
	ctx, terminate := context.WithCancel(t.Context())
	var upgrades atomic.Int64
	shop := shopServer(ctx, t, func(r *http.Request) bool {
		if r.URL.Path == socketPath {
			upgrades.Add(1)
		}
		return false
	})
	s, err := newSockets(visitConfig{URL: shop.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	order := func(wantUpgrades int64) {
		t.Helper()
		if version, err := s.send(t.Context(), 0); version != "v1" || err != nil || upgrades.Load() != wantUpgrades {
			t.Errorf("%q answers, and %d WebSockets were opened, want %d; %v", version, upgrades.Load(), wantUpgrades, err)
		}
	}
	order(1)
	order(1)
	s.idle[0].used = s.idle[0].used.Add(-socketIdle)
	order(2)
	terminate()
	order(2) // the answer says that it is the last one
	order(3)
}

// A call that is on an open connection when the signal comes is answered, and the connection ends.
func TestACallIsAnsweredAfterTheSignal(t *testing.T) {
	ctx, terminate := context.WithCancel(t.Context())
	shop := shopServer(ctx, t, func(*http.Request) bool { return false })
	c, err := newCalls(visitConfig{URL: shop.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for range 2 {
		if version, err := c.send(t.Context(), 0); version != "v1" || err != nil {
			t.Errorf("%q answers, %v", version, err)
		}
	}
	_ = shop.Listener.Close() // no connection comes any more
	terminate()
	if version, err := c.send(t.Context(), 0); version != "v1" || err != nil {
		t.Errorf("after the signal %q answers, %v", version, err)
	}
	for range 100 { // one more may have been on its way
		if _, err = c.send(t.Context(), 0); err != nil {
			break
		}
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("after a hundred calls the connection has not ended: %v", err)
	}
}

func TestWhereCallsAndSocketsGo(t *testing.T) {
	for name, tc := range map[string]struct {
		config        visitConfig
		address, host string
	}{
		"the port is that of HTTP":         {visitConfig{URL: "http://pay"}, "pay:80", "pay"},
		"a port of its own":                {visitConfig{URL: "http://127.0.0.1:8001"}, "127.0.0.1:8001", "127.0.0.1:8001"},
		"another host through the gateway": {visitConfig{URL: "http://gateway.plumbline", Header: "Host: shop.example.com"}, "gateway.plumbline:80", "shop.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			if address, host, err := tc.config.target(); address != tc.address || host != tc.host || err != nil {
				t.Errorf("%q for host %q, %v", address, host, err)
			}
		})
	}
}
