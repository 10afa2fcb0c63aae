// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

const peers = "peers"

// A verifier for other tokens takes none of those for proxies, and the other way round,
// whether the keys are known or the API server has to be asked; and what was answered
// about a token for one audience says nothing for another.
func TestTokensForSomethingElse(t *testing.T) {
	tests := map[string]struct {
		audience, account string
		want              identity.Reason
	}{
		"one for it":                     {peers, web.account, ""},
		"not one for proxies":            {identity.Audience, web.account, identity.ReasonAudience},
		"not one of another account":     {peers, "somebody", identity.ReasonAccount},
		"not one of somebody for others": {identity.Audience, "somebody", identity.ReasonAudience},
	}
	for name, tc := range tests {
		for keys, noKeys := range map[string]bool{"with keys": false, "without keys": true} {
			t.Run(name+" "+keys, func(t *testing.T) {
				c := newCluster()
				c.noKeys = noKeys
				p := web
				p.account = tc.account
				c.run(p, true)
				proxies := c.verifier(identity.Limits{})
				v := proxies.For(identity.Expected{Audience: peers, Account: func(namespace, name string) bool {
					return namespace == web.namespace && name == web.account
				}}, identity.Limits{})
				token := signed(c.keys["k1"], "k1", with(c.claims(p), "aud", []string{tc.audience}))
				c.minted[token] = minted{p, "k1", tc.audience, c.now.Add(life)}
				if _, err := proxies.Verify(t.Context(), token); (identity.ReasonOf(err) == identity.ReasonAudience) != (tc.audience == peers) {
					t.Errorf("as a proxy: %v", err)
				}
				if _, err := v.Verify(t.Context(), token); identity.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
					t.Errorf("%v, want %q", err, tc.want)
				}
			})
		}
	}
}
