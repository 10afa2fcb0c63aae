// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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
