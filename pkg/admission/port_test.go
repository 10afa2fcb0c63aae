// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it is closed
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhoForgetsTLSIsTold(t *testing.T) {
	metrics := NewMetrics()
	address := startServer(t, selfsigned.New(t, "serving"), nil, metrics)
	for method, want := range map[string]bool{"GET": true, "POST": true, "BREW": false} {
		c := dial(t, address)
		if _, err := fmt.Fprintf(c, "%s / HTTP/1.1\r\nHost: h\r\n\r\n", method); err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(c)
		if got := strings.HasPrefix(string(answer), "HTTP/1.0 400 "); got != want {
			t.Errorf("%s: %q", method, answer)
		}
	}
}

// BenchmarkHandshake is a whole handshake over loopback with its connection,
// of both sides together.
func BenchmarkHandshake(b *testing.B) {
	serving := selfsigned.New(b, "serving")
	address := startServer(b, serving, nil, NewMetrics())
	config := &tls.Config{RootCAs: poolOf(serving), ServerName: "localhost"}
	b.ReportAllocs()
	for b.Loop() {
		c, err := (&tls.Dialer{Config: config}).DialContext(context.Background(), "tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is a call on a connection that stays.
func BenchmarkCall(b *testing.B) {
	serving := selfsigned.New(b, "serving")
	address := startServer(b, serving, nil, NewMetrics())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: poolOf(serving), ServerName: "localhost"}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	b.ReportAllocs()
	for b.Loop() {
		response, err := client.Get("https://" + address + ValidatePath)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			b.Fatal(err)
		}
		_ = response.Body.Close()
	}
}
