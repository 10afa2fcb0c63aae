// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// Whatever is sent, it is somebody only by a signature over exactly that, and no
// error quotes it.
func FuzzVerify(f *testing.F) {
	c := newCluster()
	c.run(web, true)
	good := c.mint(web, "k1")
	parts := strings.Split(good, ".")
	f.Add("")
	f.Add(good)
	f.Add(parts[0] + "." + parts[1] + ".")
	f.Add(parts[0] + ".." + parts[2])
	f.Add(strings.ToUpper(good))
	f.Add(good + "." + parts[1])
	f.Add(`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add("eyJhbGciOiJFUzI1NiIsImNyaXQiOlsiYjY0Il0sImI2NCI6ZmFsc2V9." + parts[1] + "." + parts[2])
	f.Add(parts[0] + ".eyJleHAiOjFlOTk5fQ." + parts[2])
	c.minted = nil // reviews accept nothing
	v := c.verifier(identity.Limits{PerSecond: 1e9, Burst: 1e9})
	want := web.proxy(c.now.Add(life).Local())
	f.Fuzz(func(t *testing.T, token string) {
		got, err := v.Verify(t.Context(), token)
		if err == nil {
			// More than one text decodes to the same token.
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		}
		if got != (identity.Proxy{}) || identity.ReasonOf(err) == "" {
			t.Errorf("%+v, %v", got, err)
		}
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 20 && strings.Contains(err.Error(), part) {
				t.Errorf("the error quotes the token: %v", err)
			}
		}
	})
}
