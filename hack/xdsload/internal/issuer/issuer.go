// SPDX-License-Identifier: Apache-2.0

// Package issuer is what a cluster gives the proxies of a load test: the certificate
// of the server, and a token for each pod, which the server verifies as it does those
// of Kubernetes.
package issuer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

const (
	name      = "https://load.test"
	namespace = "load"
	account   = "default"
	life      = time.Hour
)

// Issuer signs with one key.
type Issuer struct{ key *ecdsa.PrivateKey }

// New makes one with a new key.
func New() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Issuer{key}, nil
}

// Parse one that another process has made.
func Parse(der []byte) (*Issuer, error) {
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the issuer: %w", err)
	}
	return &Issuer{key}, nil
}

// Bytes are what Parse reads.
func (i *Issuer) Bytes() ([]byte, error) { return x509.MarshalECPrivateKey(i.key) }

// Pod of a proxy.
func Pod(proxy int) string { return "proxy-" + strconv.Itoa(proxy) }

// Proxy of a pod.
func Proxy(pod string) (int, error) { return strconv.Atoi(strings.TrimPrefix(pod, "proxy-")) }

// Token of a proxy.
func (i *Issuer) Token(proxy int) (string, error) {
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "k"}}
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	now := time.Now()
	pod := Pod(proxy)
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: name, Subject: "system:serviceaccount:" + namespace + ":" + account, Audience: jwt.Audience{identity.Audience},
		Expiry: jwt.NewNumericDate(now.Add(life)), NotBefore: jwt.NewNumericDate(now), IssuedAt: jwt.NewNumericDate(now),
	}).Claims(map[string]any{"kubernetes.io": map[string]any{
		"namespace": namespace, "serviceaccount": map[string]string{"name": account, "uid": account}, "pod": map[string]string{"name": pod, "uid": pod},
	}}).Serialize()
}

// Keys implements identity.API.
func (i *Issuer) Keys(context.Context) (string, []jose.JSONWebKey, error) {
	return name, []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "k", Use: "sig"}}, nil
}

// Review implements identity.API: there is nobody to ask.
func (*Issuer) Review(context.Context, string, string) (authenticationv1.TokenReviewStatus, error) {
	return authenticationv1.TokenReviewStatus{}, errors.New("there is no API server in a load test")
}

// Pod implements identity.Pods: all that have a token are there.
func (*Issuer) Pod(_, pod string) (uid, serviceAccount string, found bool) { return pod, account, true }

// Certificate for some addresses, signed by itself.
func Certificate(addresses []net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "xdsload"}, IPAddresses: addresses, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
