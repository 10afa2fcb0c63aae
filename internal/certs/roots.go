// SPDX-License-Identifier: Apache-2.0

package certs

import "crypto/x509"

// Roots vouch for the certificate that other replicas serve: what is published, and
// what is about to be. It is nil when there is nothing yet.
func (k *Keeper) Roots() *x509.CertPool {
	roots, some := x509.NewCertPool(), false
	for _, bundle := range k.watch.bundles() {
		some = roots.AppendCertsFromPEM(bundle) || some
	}
	if m := k.current.Load(); m != nil {
		for _, authority := range m.Authorities {
			roots.AddCert(authority)
			some = true
		}
	}
	if !some {
		return nil
	}
	return roots
}
