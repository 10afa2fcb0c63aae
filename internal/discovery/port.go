// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/go-logr/logr"

	"github.com/plumbline-dev/plumbline/pkg/tlsport"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// portLimits are those of the port for proxies, which every pod reaches. A proxy has one connection,
// and two while one replaces the other. All proxies of a node may come from one address. After a
// restart ten thousand come at once, and wait for the processor rather than come again.
var portLimits = tlsport.Limits{Connections: 20_000, UnderWay: 4_096, OfCaller: 512, Handshake: 30 * time.Second, Turn: 30 * time.Second}

// listenTLS gives connections that have done their handshake.
func listenTLS(inner net.Listener, limits tlsport.Limits, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), metrics *tlsport.Metrics, log logr.Logger) net.Listener {
	return tlsport.Listen(inner, tlsport.Config{
		Limits: limits,
		TLS: &tls.Config{
			GetCertificate: certificate, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
			// A proxy has no use for the beginning of a response, for which crypto/tls begins with
			// records of one packet.
			DynamicRecordSizingDisabled: true,
		},
		Metrics: metrics, Log: slog.New(logr.ToSlogHandler(log)), Wrap: serve.Records,
	})
}
