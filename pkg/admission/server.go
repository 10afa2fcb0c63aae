// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

// The paths that are served.
const (
	MutatePath   = "/mutate"
	ValidatePath = "/validate"
	InjectPath   = "/inject"
)

// Time limits of a connection.
const (
	// bodyTimeout is how long a body may take; the API server sends the whole
	// review at once and gives up after two seconds.
	bodyTimeout = 5 * time.Second
	// writeTimeout bounds the answer.
	writeTimeout = 10 * time.Second
	// idleTimeout is longer than the 90 s after which client-go closes an idle
	// connection: were it not, we could close one in the moment that the API
	// server uses it, and a POST is not repeated. The same holds for a
	// connection on which no request has come yet. How many idle connections
	// there may be is bounded.
	idleTimeout = 2 * time.Minute
	// stopGrace is how long calls that are under way may take at the end.
	stopGrace = 5 * time.Second
)

// limits of the port. An API server opens as many connections as it has calls under way; an idle one
// holds about 30 KiB. It gives up a call after two seconds, and its other calls wait too: who has
// waited a second for a turn is turned away before the handshake costs anything.
var limits = tlsport.Limits{Connections: 1536, UnderWay: MaxHandshakes, OfCaller: 512, Handshake: 5 * time.Second, Turn: time.Second}

// MaxHandshakes is how many handshakes may be under way. With so many computed at once nobody ever
// waits. A handshake costs about twice what a review does.
const MaxHandshakes = 1024

// ServerConfig says how to listen.
type ServerConfig struct {
	// Host is empty for all addresses.
	Host string
	Port int
	// GetCertificate gives the serving certificate at every handshake.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAs verify the API server's client certificate; nil asks for none.
	// A caller without one is served all the same: its reviews only count as
	// not authenticated.
	ClientCAs *x509.CertPool
	// ConnectionAge is the shortest life of a connection that is in use.
	ConnectionAge time.Duration
	// Handshakes is how many TLS handshakes are computed at once; 0 means half of
	// the processors, and from MaxHandshakes on none ever waits.
	Handshakes int
	Metrics    *Metrics
	Log        *slog.Logger
}

// Server serves reviews over TLS.
type Server struct {
	cfg         ServerConfig
	connections *Connections
	http        *http.Server
}

// NewServer returns a server with TLS 1.2 at least, 1.3 with every API server
// of today, and HTTP/1.1 only, because the API server would send all its calls
// through one HTTP/2 connection to one replica (kubernetes/kubernetes#75791).
// The handlers are by their path.
func NewServer(cfg ServerConfig, handlers map[string]http.Handler) *Server {
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.Handle(path, handler)
	}
	connections := NewConnections(mux, cfg.ConnectionAge, time.Now)
	return &Server{cfg: cfg, connections: connections, http: &http.Server{
		Handler:           connections,
		ConnContext:       connections.Begin,
		ReadHeaderTimeout: idleTimeout,
		IdleTimeout:       idleTimeout,
		WriteTimeout:      writeTimeout,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(serverErrors{cfg.Log}, "", 0),
	}}
}

func (s *Server) tlsConfig() *tls.Config {
	c := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: s.cfg.GetCertificate,
	}
	if s.cfg.ClientCAs != nil {
		c.ClientAuth = tls.VerifyClientCertIfGiven
		c.ClientCAs = s.cfg.ClientCAs
	}
	return c
}

// Drain makes every further answer the last one on its connection.
func (s *Server) Drain() { s.connections.Drain() }

// Run serves until ctx ends and lets calls that are under way finish.
func (s *Server) Run(ctx context.Context) error {
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", net.JoinHostPort(s.cfg.Host, strconv.Itoa(s.cfg.Port)))
	if err != nil {
		return fmt.Errorf("listening for reviews: %w", err)
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		stopped <- s.http.Shutdown(grace)
	})
	err = s.http.Serve(s.listenTLS(tcp))
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving reviews: %w", err)
	}
	switch err := <-stopped; {
	case errors.Is(err, context.DeadlineExceeded):
		// Whoever is still sending after the grace does not keep us, and is no
		// fault of ours.
		s.cfg.Log.Warn("admission.cut_off", "grace", stopGrace.String())
		if err := s.http.Close(); err != nil {
			return fmt.Errorf("cutting off the last connections: %w", err)
		}
	case err != nil:
		return fmt.Errorf("ending the last calls: %w", err)
	}
	return nil
}

func (s *Server) listenTLS(tcp net.Listener) net.Listener {
	limits := limits
	limits.Computed = s.cfg.Handshakes
	return tlsport.Listen(tcp, tlsport.Config{Limits: limits, TLS: s.tlsConfig(), Metrics: s.cfg.Metrics.Port, Log: s.cfg.Log})
}

// serverErrors takes what net/http would print.
type serverErrors struct {
	log *slog.Logger
}

// Write implements io.Writer; net/http writes one line at a time.
func (e serverErrors) Write(line []byte) (int, error) {
	e.log.Warn("admission.server", "error", strings.TrimSpace(string(line)))
	return len(line), nil
}

// ErrNoClientCA says that a file holds no certificate.
var ErrNoClientCA = errors.New("no certificate in the client CA file")

// ParseClientCAs reads PEM certificates.
func ParseClientCAs(raw []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, ErrNoClientCA
	}
	return pool, nil
}

// AuthenticatedAs recognizes the API server by its verified client certificate;
// an empty name accepts any certificate of the client CA.
func AuthenticatedAs(commonName string) func(*http.Request) bool {
	return func(req *http.Request) bool {
		if req.TLS == nil || len(req.TLS.VerifiedChains) == 0 {
			return false
		}
		leaf := req.TLS.VerifiedChains[0][0]
		return commonName == "" || leaf.Subject.CommonName == commonName
	}
}
