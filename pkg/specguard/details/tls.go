// SPDX-License-Identifier: Apache-2.0

package details

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// TLS says how a server that speaks TLS is known.
type TLS struct {
	// CAFile holds the authorities in PEM; read at every connect, so that a
	// rotated authority needs no restart. Empty means those of the system.
	CAFile string
	// CertificateFile and KeyFile hold what the client presents, in PEM; read at every
	// connect. Empty means that the client presents none.
	CertificateFile string
	KeyFile         string
}

// dialTLS connects within budget, handshake included. Whatever fails here failed
// before a command left, and the error says so: neverSent tells by it that a
// batch can be tried again.
func (t *TLS) dialTLS(budget time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, budget)
		defer cancel()
		roots, err := t.roots()
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		own, err := t.certificates()
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, Certificates: own, MinVersion: tls.VersionTLS12}}
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("connecting with TLS: %w", err)}
		}
		return conn, nil
	}
}

// roots are the authorities; nil stands for those of the system.
func (t *TLS) roots() (*x509.CertPool, error) {
	if t.CAFile == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of Redis: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, errors.New("reading the authorities of Redis: no certificate in " + t.CAFile)
	}
	return pool, nil
}

// certificates are what the client presents.
func (t *TLS) certificates() ([]tls.Certificate, error) {
	if t.CertificateFile == "" {
		return nil, nil
	}
	own, err := tls.LoadX509KeyPair(t.CertificateFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for Redis: %w", err)
	}
	return []tls.Certificate{own}, nil
}
