// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Lifetimes.
const (
	// AuthorityLife is how long an authority is valid; it is replaced after two thirds.
	AuthorityLife = 90 * 24 * time.Hour
	// LeafLife is how long a serving certificate is valid; it is replaced after two thirds.
	LeafLife = 7 * 24 * time.Hour
	// backdate tolerates clocks of API servers that are behind ours.
	backdate = time.Hour
)

// newAuthority makes a certificate authority.
func newAuthority(now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority's key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The number tells authorities apart that share the bundle: Go's
		// verifier looks candidates up by subject.
		Subject:               pkix.Name{CommonName: "plumbline-ca", SerialNumber: serial.Text(16)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(AuthorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	certificate, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority: %w", err)
	}
	return certificate, key, nil
}

// newLeaf makes a serving certificate for DNS names and IP addresses.
func newLeaf(now time.Time, names []string, authority *x509.Certificate, signer crypto.Signer) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the serving key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	dns, ips := splitNames(names)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "plumbline"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(LeafLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              dns,
		IPAddresses:           ips,
	}
	certificate, err := sign(template, authority, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("issuing the serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// newSerial is a random number of 127 bits, as the CA/Browser Forum's Baseline
// Requirements §7.1 ask for at least 64.
func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return serial, nil
}

func splitNames(names []string) (dns []string, ips []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
			continue
		}
		dns = append(dns, name)
	}
	return dns, ips
}

// createdAt is when an authority was made.
func createdAt(authority *x509.Certificate) time.Time { return authority.NotBefore.Add(backdate) }

// renewAt is when two thirds of a certificate's life are over.
func renewAt(c *x509.Certificate) time.Time {
	created := createdAt(c)
	return created.Add(c.NotAfter.Sub(created) * 2 / 3)
}
