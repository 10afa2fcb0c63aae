// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

var (
	errNotYetValid = errors.New("the serving certificate is not valid yet")
	errExpired     = errors.New("the serving certificate has expired")
	errWrongName   = errors.New("the serving certificate lacks a name")
	errNotVouched  = errors.New("no authority of the caBundle vouches for the serving certificate")
)

// verify says why a caller that trusts the authorities does not accept a leaf;
// nil when it does. The checks are those of crypto/x509, which API servers use,
// with the commonest reasons told apart.
func verify(leaf *tls.Certificate, authorities []*x509.Certificate, names []string, now time.Time) error {
	c := leaf.Leaf
	switch {
	case now.Before(c.NotBefore):
		return fmt.Errorf("%w: it begins at %s, and by the API server's clock it is %s", errNotYetValid, stamp(c.NotBefore), stamp(now))
	case now.After(c.NotAfter):
		return fmt.Errorf("%w: it ended at %s, and by the API server's clock it is %s", errExpired, stamp(c.NotAfter), stamp(now))
	}
	for _, name := range names {
		if c.VerifyHostname(name) != nil {
			return fmt.Errorf("%w: %s", errWrongName, name)
		}
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	for _, der := range leaf.Certificate[1:] {
		if more, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(more)
		}
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if _, err := c.Verify(options); err != nil {
		return fmt.Errorf("%w: %w", errNotVouched, err)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// verifyAll is verify with each of the published bundles.
func verifyAll(leaf *tls.Certificate, bundles [][]byte, names []string, now time.Time) error {
	for _, b := range bundles {
		authorities, err := parseBundle(b)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotVouched, err)
		}
		if err := verify(leaf, authorities, names, now); err != nil {
			return err
		}
	}
	return nil
}

// pick says which material to serve: what the Secret holds now, unless the
// configurations do not vouch for it yet and still vouch for what is served. So
// whoever writes the Secret before the bundle interrupts nothing.
func pick(serving, stored *Material, bundles [][]byte, names []string, now time.Time) *Material {
	if serving == nil || verifyAll(stored.Leaf, bundles, names, now) == nil || verifyAll(serving.Leaf, bundles, names, now) != nil {
		return stored
	}
	return serving
}
