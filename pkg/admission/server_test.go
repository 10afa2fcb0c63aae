// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

// patience bounds every wait.
const patience = 20 * time.Second

func poolOf(c tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return pool
}

// startServer serves one answer, whether the caller is authenticated, on a
// loopback port until the test ends.
func startServer(t testing.TB, serving tls.Certificate, clientCAs *x509.CertPool, metrics *Metrics) (address string) {
	t.Helper()
	return startConfigured(t, ServerConfig{
		ClientCAs: clientCAs, Metrics: metrics,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil },
	})
}

// startConfigured is startServer with another configuration.
func startConfigured(t testing.TB, cfg ServerConfig) (address string) {
	t.Helper()
	port := freeport.For(t)
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	isAPIServer := AuthenticatedAs("kube-apiserver")
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = fmt.Fprintf(w, "%v %s", isAPIServer(req), req.Proto)
	})
	cfg.Host, cfg.Port = "127.0.0.1", port
	cfg.ConnectionAge, cfg.Log = time.Minute, quiet()
	server := NewServer(cfg, map[string]http.Handler{MutatePath: handler, ValidatePath: handler})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	poll.True(t, patience, "the server listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	// What the last connection leaves behind must not be counted later.
	poll.True(t, patience, "the server forgets that", func() bool {
		return sample(t, cfg.Metrics, "plumbline_admission_handshake_errors_total", "other") > 0 && sample(t, cfg.Metrics, "plumbline_admission_handshakes", "peer") == 0
	})
	return address
}

// sample of a metric that has one label; 0 when there is none.
func sample(t testing.TB, metrics *Metrics, name, value string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == value {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestServer(t *testing.T) {
	serving, apiServer, other, stranger := selfsigned.New(t, "serving"), selfsigned.New(t, "kube-apiserver"), selfsigned.New(t, "someone"), selfsigned.New(t, "kube-apiserver")
	trusted := poolOf(apiServer)
	trusted.AddCert(other.Leaf)
	metrics := NewMetrics()
	address := startServer(t, serving, trusted, metrics)
	tests := map[string]struct {
		config *tls.Config // nil: the default
		want   string      // empty: no answer
	}{
		"without a client certificate a review is not authenticated": {want: "false HTTP/1.1"},
		"the API server's certificate is recognized":                 {config: &tls.Config{Certificates: []tls.Certificate{apiServer}}, want: "true HTTP/1.1"},
		"another certificate of the same authority is not":           {config: &tls.Config{Certificates: []tls.Certificate{other}}, want: "false HTTP/1.1"},
		"HTTP/2 is not spoken":                                       {config: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}, want: "false HTTP/1.1"},
		"TLS 1.2 is enough":                                          {config: &tls.Config{MaxVersion: tls.VersionTLS12}, want: "false HTTP/1.1"},
		"TLS 1.1 is not":                                             {config: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}},
		"a certificate of a stranger is refused": {config: &tls.Config{
			// The client would not offer it by itself: the server names the authorities it knows.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil },
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{}
			if tc.config != nil {
				config = tc.config.Clone()
			}
			config.RootCAs, config.ServerName = poolOf(serving), "localhost"
			transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}
			defer transport.CloseIdleConnections()
			response, err := (&http.Client{Transport: transport}).Get("https://" + address + ValidatePath)
			if err != nil {
				if tc.want != "" {
					t.Fatal(err)
				}
				return
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil || string(body) != tc.want {
				t.Errorf("got %q (%v), want %q", body, err, tc.want)
			}
		})
	}
}

func TestACallerThatDoesNotTrustOurCertificateIsCounted(t *testing.T) {
	serving, other, metrics := selfsigned.New(t, "serving"), selfsigned.New(t, "other"), NewMetrics()
	address := startServer(t, serving, nil, metrics)
	for name, config := range map[string]*tls.Config{
		"certificate_rejected": {RootCAs: poolOf(other), ServerName: "localhost"},
		"other":                {RootCAs: poolOf(serving), ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
	} {
		before := sample(t, metrics, "plumbline_admission_handshake_errors_total", name)
		if conn, err := tls.Dial("tcp", address, config); err == nil {
			_ = conn.Close()
			t.Errorf("%s: the handshake worked", name)
		}
		poll.True(t, patience, name+" is counted", func() bool {
			return sample(t, metrics, "plumbline_admission_handshake_errors_total", name) == before+1
		})
	}
}

func TestParseClientCAs(t *testing.T) {
	if _, err := ParseClientCAs([]byte("rubbish")); err == nil {
		t.Error("rubbish was taken")
	}
	c := selfsigned.New(t, "ca")
	if _, err := ParseClientCAs(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})); err != nil {
		t.Error(err)
	}
}

func TestACallerThatSaysNothingDoesNotMakeTheEndAFailure(t *testing.T) {
	var mute net.Conn
	t.Cleanup(func() { _ = mute.Close() }) // after the server has ended
	metrics := NewMetrics()
	address := startServer(t, selfsigned.New(t, "serving"), nil, metrics)
	var err error
	if mute, err = net.Dial("tcp", address); err != nil {
		t.Fatal(err)
	}
	poll.True(t, patience, "the server takes the connection", func() bool {
		return sample(t, metrics, "plumbline_admission_handshakes", "peer") == 1
	})
}

// An API server gives a call up after two seconds, and closes an idle connection after 90.
func TestTheTimeLimitsOfAConnection(t *testing.T) {
	server := NewServer(ServerConfig{Log: quiet()}, nil).http
	for name, limit := range map[string]struct{ got, want time.Duration }{
		"headers": {server.ReadHeaderTimeout, 2 * time.Minute},
		"idle":    {server.IdleTimeout, 2 * time.Minute},
		"answer":  {server.WriteTimeout, 10 * time.Second},
	} {
		if limit.got != limit.want {
			t.Errorf("%s: %s, want %s", name, limit.got, limit.want)
		}
	}
}
