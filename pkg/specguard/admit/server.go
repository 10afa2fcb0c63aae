// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// The paths that are served.
const (
	MutatePath   = "/mutate"
	ValidatePath = "/validate"
)

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
}

// NewServer returns controller-runtime's webhook server with our TLS: 1.2 at
// least, 1.3 with every API server of today, and HTTP/1.1 only, because the API
// server would send all its calls through one HTTP/2 connection to one replica
// (kubernetes/kubernetes#75791).
func NewServer(cfg ServerConfig, mutate, validate http.Handler) webhook.Server {
	server := webhook.NewServer(webhook.Options{
		Host: cfg.Host,
		Port: cfg.Port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.NextProtos = []string{"http/1.1"}
			c.GetCertificate = cfg.GetCertificate
			if cfg.ClientCAs != nil {
				c.ClientAuth = tls.VerifyClientCertIfGiven
				c.ClientCAs = cfg.ClientCAs
			}
		}},
	})
	server.Register(MutatePath, mutate)
	server.Register(ValidatePath, validate)
	return server
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

// AuthenticatedAs recognises the API server by its verified client certificate;
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
