// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// BenchmarkVerify measures the two streams of a proxy without a question to the API server: the first one shows a token that is
// new.
func BenchmarkVerify(b *testing.B) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"ES256": newKey(), "RS256": rsaKey} {
		for stream, streams := range map[string]int{"first": 1, "both": 2} {
			b.Run(name+"/"+stream, func(b *testing.B) {
				c := newCluster()
				c.run(web, true)
				c.keys["k1"] = key
				v := c.verifier(identity.Limits{})
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					c.wait(time.Second) // the claims of another token are others
					token := c.mint(web, "k1")
					b.StartTimer()
					for range streams {
						if _, err := v.Verify(b.Context(), token); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
