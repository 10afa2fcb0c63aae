// SPDX-License-Identifier: Apache-2.0

//go:build integration

package envoyxds

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
)

// The application sees no header that it would not see without a time-out.
func TestARequestEndsWithTheTimeOutOfItsService(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		saw := make(chan []string, 1)
		s := web(nil, slot("", endpoint(raw(t, func(c net.Conn) {
			r := bufio.NewReader(c)
			if lines, err := head(r); err == nil {
				saw <- lines
				_, _ = io.Copy(io.Discard, r) // until the proxy ends it, without an answer
			}
		}), ir.Ready)))
		s.Settings.RequestTimeout = 200 * time.Millisecond
		if got := ask(t, client(t, false), serve(t, s)[0]); got.status != http.StatusGatewayTimeout {
			t.Errorf("the status is %d, want 504", got.status)
		}
		lines := <-saw
		slices.Sort(lines[1:])
		if d := cmp.Diff([]string{"Accept-Encoding: gzip", "User-Agent: Go-http-client/1.1"}, slices.DeleteFunc(lines[1:], func(l string) bool {
			return l[:5] == "Host:" || l == "x-forwarded-proto: http"
		})); d != "" {
			t.Errorf("the headers (-want +seen):\n%s", d)
		}
	})
}

// One of two endpoints swallows packets.
func TestWithoutRetriesARequestHasOneAttempt(t *testing.T) {
	envoy.EachVersion(t, func(t *testing.T) {
		retried := web(nil, slot("", endpoint(named(t, "a"), ir.Ready), endpoint(backend.Hole(t), ir.Ready)))
		retried.Settings.ConnectTimeout = 50 * time.Millisecond
		once := retried
		once.Settings.RetriesOff = true
		addresses := serve(t, retried, once)
		for i, want := range []map[int]bool{{200: true}, {200: true, 503: true}} {
			got := map[int]bool{}
			for range 8 {
				got[ask(t, client(t, false), addresses[i]).status] = true
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the statuses (-want +got):\n%s", d)
			}
		}
	})
}
