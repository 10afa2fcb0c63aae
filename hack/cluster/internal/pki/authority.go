// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

const (
	lifetime = 365 * 24 * time.Hour // longer than any cluster for development lives
	backdate = time.Hour            // forgives a clock that is set back
)

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct{ Certificate, Key []byte }

// Authority signs certificates.
type Authority struct {
	Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         time.Time
}

// Subject is whom a certificate speaks for. In Kubernetes the common name is the
// user and the organizations are its groups.
type Subject struct {
	CommonName    string
	Organizations []string
	DNSNames      []string
	Addresses     []netip.Addr
}

// NewAuthority makes a self-signed authority that is valid from shortly before now.
func NewAuthority(commonName string, now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(Subject{CommonName: commonName}, now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("creating authority %s: %w", commonName, err)
	}
	return &Authority{Pair: pair, certificate: template, key: key, now: now}, nil
}

// Issue makes a certificate that serves as client and as server certificate.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(subject, a.now)
	if err != nil {
		return Pair{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	pair, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing a certificate for %s: %w", subject.CommonName, err)
	}
	return pair, nil
}

// NewSigningKey makes the key pair for service account tokens: the public and
// the private key, PEM encoded, in the fields of a Pair.
func NewSigningKey() (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encoding a public key: %w", err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode("PUBLIC KEY", public), Key: private}, nil
}

// newKey makes a P-256 key: a fraction of the time of an RSA key, and bring-up
// needs nine of them.
func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a key: %w", err)
	}
	return key, nil
}

func newTemplate(subject Subject, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("generating a serial number: %w", err)
	}
	addresses := make([]net.IP, 0, len(subject.Addresses))
	for _, address := range subject.Addresses {
		addresses = append(addresses, address.AsSlice())
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: subject.CommonName, Organization: subject.Organizations},
		DNSNames:     subject.DNSNames,
		IPAddresses:  addresses,
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(lifetime),
	}, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, error) {
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, err
	}
	private, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encode("CERTIFICATE", certificate), Key: private}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return encode("EC PRIVATE KEY", private), nil
}

func encode(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
}
