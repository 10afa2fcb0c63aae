// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Keys of the Secret.
const (
	keyCABundle = "ca.crt"
	keyCAKey    = "ca.key"
	keyLeaf     = "tls.crt"
	keyLeafKey  = "tls.key"
)

// Material is what the Secret holds.
type Material struct {
	// Authorities are the certificates of the bundle; the first one signs.
	Authorities []*x509.Certificate
	// SignerKey belongs to the first authority; nil when it does not fit.
	SignerKey crypto.Signer
	// Leaf is the serving certificate with its key; nil when there is none or
	// the two do not fit.
	Leaf *tls.Certificate
}

// ErrNoMaterial says that a Secret holds no certificates: it is new, or somebody
// emptied it.
var ErrNoMaterial = errors.New("no certificates in the secret")

// ParseMaterial reads the data of the Secret. Keys that do not fit are left
// nil, which Decide repairs; without any authority it is ErrNoMaterial.
func ParseMaterial(data map[string][]byte) (*Material, error) {
	authorities, err := parseBundle(data[keyCABundle])
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", keyCABundle, err)
	}
	if len(authorities) == 0 {
		return nil, ErrNoMaterial
	}
	m := &Material{Authorities: authorities}
	if key, err := parseKey(data[keyCAKey]); err == nil && fits(key, authorities[0]) {
		m.SignerKey = key
	}
	if leaf, err := tls.X509KeyPair(data[keyLeaf], data[keyLeafKey]); err == nil {
		m.Leaf = &leaf
	}
	return m, nil
}

// ParseServing reads the data of a Secret of type kubernetes.io/tls that
// somebody else writes: a chain in tls.crt, its key in tls.key. Without either
// it is ErrNoMaterial.
func ParseServing(data map[string][]byte) (*Material, error) {
	if len(data[keyLeaf]) == 0 || len(data[keyLeafKey]) == 0 {
		return nil, ErrNoMaterial
	}
	leaf, err := tls.X509KeyPair(data[keyLeaf], data[keyLeafKey])
	if err != nil {
		return nil, fmt.Errorf("reading %s and %s: %w", keyLeaf, keyLeafKey, err)
	}
	return &Material{Leaf: &leaf}, nil
}

// Data is the inverse of ParseMaterial.
func (m *Material) Data() (map[string][]byte, error) {
	data := map[string][]byte{keyCABundle: Bundle(m.Authorities)}
	var err error
	if data[keyCAKey], err = encodeKey(m.SignerKey); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", keyCAKey, err)
	}
	if m.Leaf != nil {
		data[keyLeaf] = encodeCertificates(m.Leaf.Leaf)
		if data[keyLeafKey], err = encodeKey(m.Leaf.PrivateKey.(crypto.Signer)); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", keyLeafKey, err)
		}
	}
	return data, nil
}

// Bundle is the caBundle of authorities.
func Bundle(authorities []*x509.Certificate) []byte { return encodeCertificates(authorities...) }

func encodeCertificates(certificates ...*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certificates {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return out.Bytes()
}

func parseBundle(raw []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		block, raw = pem.Decode(raw)
		if block == nil {
			return out, nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseKey(raw []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T is no ECDSA key", key)
	}
	return signer, nil
}

func fits(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(*ecdsa.PublicKey)
	return ok && public.Equal(c.PublicKey)
}
