// SPDX-License-Identifier: Apache-2.0

package edgetraffic

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A server that closes a kept connection under a POST loses the request.
func TestAPostIsNotSentTwice(t *testing.T) {
	var closes atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !closes.Load() {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	c, at := NewClient(t), s.Listener.Addr().String()
	if _, err := c.Ask(t, http.MethodPost, at); err != nil {
		t.Fatal(err)
	}
	closes.Store(true)
	if got, err := c.Ask(t, http.MethodPost, at); err == nil {
		t.Errorf("answered %+v", got)
	}
	if c.Opened() != 1 {
		t.Errorf("%d connections were opened", c.Opened())
	}
}

func TestACrowdCountsItsAnswers(t *testing.T) {
	c := GatherCrowd(t, StartDelay(t, StartUpstream(t, "stable", 0), time.Millisecond), 3, OnlyToTheCanary)
	c.AwaitMore(12)
	c.LoseNone()
	if served := c.Served(); served["stable"] != c.Answered() || c.Answered() < 12 || c.Opened() != 3 {
		t.Errorf("served %v over %d connections", served, c.Opened())
	}
}

func TestAWayBackFromTheCanaryIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now string
		bad         bool
	}{
		"the first answer":          {"", "stable", false},
		"it stays":                  {"canary", "canary", false},
		"it comes to the canary":    {"stable", "canary", false},
		"it goes back":              {"canary", "stable", true},
		"the proxy answers instead": {"canary", "", true},
	} {
		if err := OnlyToTheCanary(tc.before, tc.now); (err != nil) != tc.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}
