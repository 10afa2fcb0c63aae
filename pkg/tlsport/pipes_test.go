// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plumbline-dev/plumbline/test/harness/selfsigned"
)

// turnstile is a GetCertificate that shows and holds up the computation of
// handshakes.
type turnstile struct {
	serving tls.Certificate
	inside  atomic.Int64
	entered chan string // addresses of callers
	proceed chan struct{}
}

func newTurnstile(t *testing.T) *turnstile {
	t.Helper()
	return &turnstile{serving: selfsigned.New(t, "serving"), entered: make(chan string, 1000), proceed: make(chan struct{})}
}

func (s *turnstile) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.inside.Add(1)
	s.entered <- HostOf(hello.Conn.RemoteAddr().String())
	<-s.proceed
	s.inside.Add(-1)
	return &s.serving, nil
}

// listenOnPipes is a listener with connections in memory, and with nobody to
// call Accept.
func listenOnPipes(places int, config *tls.Config) (*pipes, *tlsListener, *Metrics) {
	inner, metrics := newPipes(), NewMetrics("test")
	return inner, listenTLS(newGate(inner, newTurns(places), limits, metrics, quiet()), config, as), metrics
}

// shakeHands begins handshakes from an address.
func shakeHands(wg *sync.WaitGroup, t *testing.T, p *pipes, from string, n int) {
	for range n {
		conn := p.dial(from)
		wg.Go(func() {
			if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake(); err != nil {
				t.Error(from, err)
			}
			_, _ = io.Copy(io.Discard, conn) // until the server closes
			_ = conn.Close()
		})
	}
}

func (m *Metrics) now(s handshakeState) float64 { return testutil.ToFloat64(m.handshakes[s]) }

// acceptAndClose accepts connections and closes them.
func acceptAndClose(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.(*tls.Conn).NetConn().Close()
	}
}

func dialFrom(t testing.TB, from, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	c, err := dialer.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// pipes is a listener of connections in memory, for tests with their own time.
type pipes struct {
	conns  chan net.Conn
	errs   chan error
	closed chan struct{}
	once   sync.Once
}

type pipeConn struct {
	net.Conn
	from string
}

func (p pipeConn) RemoteAddr() net.Addr { return addr(p.from) }

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return addr("pipe") }

func (p *pipes) Close() error { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipes) dial(from string) net.Conn {
	near, far := net.Pipe()
	p.conns <- pipeConn{far, from + ":1"}
	return near
}
