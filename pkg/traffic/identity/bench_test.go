// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// BenchmarkVerify is what a new stream costs when nobody has to be asked.
func BenchmarkVerify(b *testing.B) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ES256": newKey(), "RS256": rsaKey} {
		b.Run(name, func(b *testing.B) {
			c := newCluster()
			c.run(web, true)
			c.keys["k1"] = key
			v := c.verifier(identity.Limits{})
			token := c.mint(web, "k1")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
