// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Two users order from a shop whose version changes, fails and is back.
func TestVisits(t *testing.T) {
	var version atomic.Value
	version.Store("v1")
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, _ := version.Load().(string)
		if v == "" {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		if r.Method != http.MethodPost || r.URL.Path != "/orders" || r.Header.Get("X-User") == "" || r.Header.Get("X-Beta") != "yes" {
			t.Errorf("an order is %s %s %v", r.Method, r.URL, r.Header)
		}
		reply(w, answer{Version: v})
	}))
	defer shop.Close()
	v, err := newVisitors(visitConfig{URL: shop.URL, Rate: 200, Users: 2, Header: "X-Beta: yes"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.run(ctx) }()

	until(t, v, func(s told) bool { return s.Answered["v1"] > 3 })
	version.Store("")
	until(t, v, func(s told) bool { return s.Failed > 1 && len(s.Failures) > 0 })
	version.Store("v2")
	until(t, v, func(s told) bool { return s.Moved["v1>v2"] == 2 && s.Answered["v2"] > 3 })
	cancel()
	<-ended
	s := v.report()
	if s.Started != s.Answered["v1"]+s.Answered["v2"]+s.Failed || s.Moved["v2>v1"] != 0 {
		t.Errorf("it adds up to something else: %+v", s)
	}
	recorder := httptest.NewRecorder()
	handler(t.Context(), config{}, v).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/visits", nil))
	var said told
	if err := json.Unmarshal(recorder.Body.Bytes(), &said); err != nil || said.Started != s.Started || said.Calls != nil {
		t.Errorf("/visits says %s: %v", recorder.Body, err)
	}
}

// While the answer to one user is late, that user does not order again, all others do,
// and no order after the late one counts as settled.
func TestAnAnswerIsLate(t *testing.T) {
	var ofLate atomic.Int64
	answers := make(chan struct{})
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-User") == "user-1" && ofLate.Add(1) == 1 {
			<-answers
			reply(w, answer{Version: "v1"})
			return
		}
		reply(w, answer{Version: "v2"})
	}))
	defer shop.Close()
	v, err := newVisitors(visitConfig{URL: shop.URL, Rate: 200, Users: 3})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.run(ctx) }()

	until(t, v, func(s told) bool { return s.Answered["v2"] > 10 })
	if s := v.report(); s.Settled != 1 || s.Started <= 11 || ofLate.Load() != 1 {
		t.Errorf("while the second order has no answer, its user has sent %d, and %+v", ofLate.Load(), s)
	}
	close(answers)
	until(t, v, func(s told) bool { return s.Settled > 11 && s.Moved["v1>v2"] == 1 })
	cancel()
	<-ended
	if s := v.report(); s.Settled != s.Started || s.Moved["v2>v1"] != 0 {
		t.Errorf("in the end: %+v", s)
	}
}

// A user with cookies sends what it was given.
func TestVisitsWithCookies(t *testing.T) {
	var known atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("visitor"); err == nil {
			known.Add(1)
		}
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: "1"})
		reply(w, answer{Version: "v1"})
	}))
	defer shop.Close()
	v, err := newVisitors(visitConfig{URL: shop.URL, Rate: 200, Users: 1, Cookies: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.run(ctx) }()
	until(t, v, func(told) bool { return known.Load() > 0 })
	cancel()
	<-ended
}

func until(t *testing.T, v *visitors, holds func(told) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !holds(v.report()) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("in vain: %+v", v.report())
		}
	}
}

func TestHeaderOfOrders(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                       {"pay", ""},
		"no colon":               {"pay", ""},
		"Host: shop.example.com": {"shop.example.com", ""},
		"x-beta:  yes ":          {"pay", "yes"},
	} {
		request := httptest.NewRequest(http.MethodPost, "http://pay/", nil)
		visitConfig{Header: text}.header(request)
		if got := [2]string{request.Host, request.Header.Get("X-Beta")}; got != want {
			t.Errorf("%q makes %q, want %q", text, got, want)
		}
	}
}
