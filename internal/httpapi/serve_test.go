// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline-dev/plumbline/internal/httpapi/streamtest"
)

// A caller that sends slowly, or too much before the body, keeps no connection.
func TestASlowCallerLosesTheConnection(t *testing.T) {
	const begun = "POST / HTTP/1.1\r\nHost: a\r\n"
	tests := map[string]struct {
		sent   string
		within time.Duration
		answer string
	}{
		"no request":                   {"", headerTimeout, ""},
		"headers without an end":       {begun, headerTimeout, ""},
		"a body that never comes":      {begun + "Content-Length: 10\r\n\r\n", bodyTimeout, "HTTP/1.1 400"},
		"no second request":            {begun + "Content-Length: 0\r\n\r\n", idleTimeout, "HTTP/1.1 200"},
		"headers that are too large":   {begun + "X: " + strings.Repeat("a", 2*maxHeaderBytes), time.Second, "HTTP/1.1 431"},
		"a line of a request too long": {"GET /" + strings.Repeat("a", 2*maxHeaderBytes), time.Second, "HTTP/1.1 431"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := streamtest.NewPipes()
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				reads := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						w.WriteHeader(http.StatusBadRequest)
					}
				})
				go func() { ended <- Serve(ctx, listener, reads, time.Second, slog.New(slog.DiscardHandler)) }()
				client, err := listener.Dial(ctx, "", "")
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				go func() { _, _ = io.WriteString(client, tc.sent) }() // the server may close before it has read all
				answer, _ := io.ReadAll(client)                        // until the server closes
				if got := time.Since(began); got > tc.within+time.Second || !strings.HasPrefix(string(answer), tc.answer) {
					t.Errorf("%q is the answer, and the connection ended after %s", answer, got)
				}
				_ = client.Close()
				end()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
