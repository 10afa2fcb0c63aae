// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var limits = Limits{Connections: 1536, UnderWay: 1024, OfCaller: 512, Handshake: 5 * time.Second, Turn: time.Second}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// patience bounds every wait.
const patience = 20 * time.Second

func poolOf(c tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return pool
}

// listen on a loopback port until the test ends. Connections that have done their handshake are read
// to their end.
func listen(t *testing.T, computed int, metrics *Metrics, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (address string) {
	t.Helper()
	tcp, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	of := limits
	of.Computed = computed
	l := Listen(tcp, Config{Limits: of, TLS: &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, Metrics: metrics, Log: quiet()})
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close() // it is closed
		served.Wait()
	})
	return tcp.Addr().String()
}

// as a connection is.
func as(c net.Conn) net.Conn { return c }
