// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redirect

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// secured is an HTTPS server in the namespace. It wants a certificate of its clients,
// and answers with what it knows of the connection, and with the body.
func (n namespace) secured(t testing.TB, at string) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := r.TLS.ExportKeyingMaterial("a test", nil, 32)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Key", fmt.Sprintf("%x", key))
		w.Header().Set("Seen", fmt.Sprint(r.Proto, " ", r.TLS.ServerName, " ", len(r.TLS.PeerCertificates)))
		_, _ = io.Copy(w, r.Body) // the client sees what is missing
	}))
	_ = s.Listener.Close() // of another namespace
	err := n.Do(func() (err error) {
		s.Listener, err = net.Listen("tcp", at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.EnableHTTP2, s.TLS = true, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// handshake connects as a user of the pod, and says what TLS has agreed on.
func (w world) handshake(ctx context.Context, to string, config *tls.Config) (*tls.Conn, error) {
	var raw net.Conn
	err := w.pod.As(someone, func() (err error) {
		raw, err = net.DialTimeout("tcp", to, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

// TLS ends at the server that the application speaks to, and nowhere between: both ends
// have the same keys, the certificates of each other, and all that was sent.
func TestTLSOfThePodPassesUntouched(t *testing.T) {
	w := newWorldWithoutProxy(t)
	server := w.outside.secured(t, ":443")
	w.pod.mustRedirect(t, arguments()...)
	w.pod.startEnvoy(t)
	poll.True(t, limit, "Envoy passes on", func() bool {
		return w.pod.reach(someone, "tcp", "198.51.100.1:80") == "outside 198.51.100.1:80"
	})
	own, _ := envoy.NewServing(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for name, tc := range map[string]struct {
		to       string
		version  uint16
		protocol string
		want     string
	}{
		"TLS 1.3 with HTTP/2":           {"198.51.100.1:443", tls.VersionTLS13, "h2", "HTTP/2.0 example.com 1"},
		"TLS 1.2 with HTTP/1.1":         {"198.51.100.1:443", tls.VersionTLS12, "http/1.1", "HTTP/1.1 example.com 1"},
		"IPv6":                          {"[2001:db8:2::1]:443", tls.VersionTLS13, "h2", "HTTP/2.0 example.com 1"},
		"a range that is excluded":      {"203.0.113.1:443", tls.VersionTLS13, "h2", "HTTP/2.0 example.com 1"},
		"no protocol that is agreed on": {"198.51.100.1:443", tls.VersionTLS13, "", "HTTP/1.1 example.com 1"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: trusted, ServerName: "example.com", MinVersion: tc.version, MaxVersion: tc.version, Certificates: []tls.Certificate{own}} //nolint:gosec // as the table says
			if tc.protocol != "" {
				config.NextProtos = []string{tc.protocol}
			}
			c, err := w.handshake(t.Context(), tc.to, config)
			if err != nil {
				t.Fatal(err)
			}
			state := c.ConnectionState()
			key, err := state.ExportKeyingMaterial("a test", nil, 32)
			if err != nil {
				t.Fatal(err)
			}
			if seen, serverKey := exchange(t, c, body); seen != tc.want || serverKey != fmt.Sprintf("%x", key) {
				t.Errorf("the server sees %q, want %q, and has the key %s, the client %x", seen, tc.want, serverKey, key)
			}
			if !state.PeerCertificates[0].Equal(server.Certificate()) || state.Version != tc.version {
				t.Errorf("another certificate or version: %x", state.Version)
			}
		})
	}
	t.Run("who trusts another authority is not served", func(t *testing.T) {
		if _, err := w.handshake(t.Context(), "198.51.100.1:443", &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "example.com", MinVersion: tls.VersionTLS13}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Errorf("it is told %v", err)
		}
	})
}

// exchange sends a body over a connection and demands it back; the results are what the
// server tells of the connection.
func exchange(t *testing.T, c *tls.Conn, body []byte) (seen, key string) {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com/", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back, body) {
		t.Errorf("%d of %d bytes come back, or others", len(back), len(body))
	}
	return response.Header.Get("Seen"), response.Header.Get("Key")
}
