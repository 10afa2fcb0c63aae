// SPDX-License-Identifier: Apache-2.0

package tlsport

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"runtime"
	"time"
)

// Limits of a port. Connections whose handshake is done, and those whose handshake is under way,
// have places of their own: however many handshakes somebody begins, none takes the place of a
// connection that is in use.
type Limits struct {
	// Connections are those whose handshake is done, UnderWay those whose handshake is not, and
	// OfCaller those of one address, of both sorts together.
	Connections, UnderWay, OfCaller int
	// Computed is how many handshakes are computed at once; 0 is half of the processors, at least
	// one. With UnderWay none ever waits.
	Computed int
	// Handshake is how long one may take, and Turn how long it may wait for the processor.
	Handshake, Turn time.Duration
}

// Config of a listener.
type Config struct {
	Limits  Limits
	TLS     *tls.Config
	Metrics *Metrics
	Log     *slog.Logger
	// Wrap makes of a connection the one that TLS reads and writes; nil takes it as it is.
	Wrap func(net.Conn) net.Conn
}

// Listen begins to accept connections of another listener. Those that it gives have done their
// handshake. Close closes the other one, too.
func Listen(inner net.Listener, c Config) net.Listener {
	if c.Wrap == nil {
		c.Wrap = func(conn net.Conn) net.Conn { return conn }
	}
	places := cmp.Or(c.Limits.Computed, max(1, runtime.GOMAXPROCS(0)/2))
	return listenTLS(newGate(inner, newTurns(places), c.Limits, c.Metrics, c.Log), c.TLS, c.Wrap)
}

// HostOf is an address without its port.
func HostOf(remoteAddress string) string {
	if host, _, err := net.SplitHostPort(remoteAddress); err == nil {
		return host
	}
	return remoteAddress
}
