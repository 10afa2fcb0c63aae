// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"encoding/base64"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// with is a copy of claims with one changed.
func with(claims fields, name string, value any) fields {
	changed := maps.Clone(claims)
	if changed[name] = value; value == nil {
		delete(changed, name)
	}
	return changed
}

func kubernetes(p pod, podClaim any) fields {
	return fields{"namespace": p.namespace, "serviceaccount": fields{"name": p.account, "uid": "sa"}, "pod": podClaim}
}

// What is decided here never reaches the API server, and what is decided there has
// to: reviews is how often it is asked.
func TestWhoIsLetIn(t *testing.T) {
	other := pod{"shop", "web-0", "uid-2", "front"}
	tests := map[string]struct {
		token   func(c *cluster) string
		setUp   func(c *cluster)
		want    identity.Reason
		reviews int
	}{
		"the proxy of a known pod": {token: func(c *cluster) string { return c.mint(web, "k1") }},
		"the proxy of a pod that the cache does not know yet": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { clear(c.cache) }, reviews: 1,
		},
		"the proxy of a pod that the cache knows by its former uid": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { c.cache[other.key()] = other }, reviews: 1,
		},
		"with a key that nobody can read": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { c.noKeys = true }, reviews: 1,
		},
		"with the name of a further issuer, which the API server accepts": {
			token: func(c *cluster) string {
				token := signed(c.keys["k1"], "k1", with(c.claims(web), "iss", "https://former.example"))
				c.minted[token] = minted{web, "k1", identity.Audience, c.now.Add(life)}
				return token
			},
			reviews: 1,
		},
		"with an opaque token, which the API server accepts": {
			token: func(c *cluster) string {
				c.minted["opaque"] = minted{web, "k1", identity.Audience, c.now.Add(life)}
				return "opaque"
			},
			reviews: 1,
		},
		"a little after the end of the token, since clocks differ": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { c.now = c.now.Add(life + 5*time.Second) },
		},
		"not without a token": {token: func(*cluster) string { return "" }, want: identity.ReasonMissing},
		"not with words":      {token: func(*cluster) string { return "let me in" }, want: identity.ReasonMalformed},
		"not with a megabyte": {token: func(*cluster) string { return strings.Repeat("a", 1<<20) }, want: identity.ReasonMalformed},
		"not with something with points": {
			token: func(*cluster) string { return "a.b.c" }, want: identity.ReasonMalformed,
		},
		"not unsigned": {
			token: func(c *cluster) string {
				header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k1"}`))
				_, rest, _ := strings.Cut(c.mint(web, "k1"), ".")
				claims, _, _ := strings.Cut(rest, ".")
				return header + "." + claims + "."
			},
			want: identity.ReasonMalformed,
		},
		"not with the public key as a secret": {
			token: func(c *cluster) string {
				header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","kid":"k1"}`))
				_, rest, _ := strings.Cut(c.mint(web, "k1"), ".")
				return header + "." + rest
			},
			want: identity.ReasonMalformed,
		},
		"not with a key of one's own under a known name": {
			token: func(c *cluster) string { return signed(newKey(), "k1", c.claims(web)) }, want: identity.ReasonSignature,
		},
		"not with a key of one's own under a new name": {
			token: func(c *cluster) string { return signed(newKey(), "k2", c.claims(web)) }, want: identity.ReasonRefused, reviews: 1,
		},
		"not with a key of one's own without a name": {
			token: func(c *cluster) string { return signed(newKey(), "", c.claims(web)) }, want: identity.ReasonRefused, reviews: 1,
		},
		"not with an opaque token that nobody knows": {
			token: func(*cluster) string { return "opaque" }, want: identity.ReasonRefused, reviews: 1,
		},
		"not with claims of another pod under a signature": {
			token: func(c *cluster) string {
				good, forged := strings.Split(c.mint(web, "k1"), "."), strings.Split(signed(newKey(), "k1", c.claims(other)), ".")
				return good[0] + "." + forged[1] + "." + good[2]
			},
			want: identity.ReasonSignature,
		},
		"not with a token for the API server": {
			token: func(c *cluster) string { return signed(c.keys["k1"], "k1", with(c.claims(web), "aud", issuer)) },
			want:  identity.ReasonAudience,
		},
		"not with a token for everybody": {
			token: func(c *cluster) string { return signed(c.keys["k1"], "k1", with(c.claims(web), "aud", nil)) },
			want:  identity.ReasonAudience,
		},
		"not after the end of the token": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { c.now = c.now.Add(life + time.Minute) },
			want: identity.ReasonExpired,
		},
		"not before its time": {
			token: func(c *cluster) string {
				return signed(c.keys["k1"], "k1", with(c.claims(web), "nbf", c.now.Add(time.Minute).Unix()))
			},
			want: identity.ReasonExpired,
		},
		"not with a token without an end": {
			token: func(c *cluster) string { return signed(c.keys["k1"], "k1", with(c.claims(web), "exp", nil)) },
			want:  identity.ReasonMalformed,
		},
		"not with another subject than its account": {
			token: func(c *cluster) string {
				return signed(c.keys["k1"], "k1", with(c.claims(web), "sub", "system:serviceaccount:shop:admin"))
			},
			want: identity.ReasonMalformed,
		},
		"not with a token of an account alone": {
			token: func(c *cluster) string {
				return signed(c.keys["k1"], "k1", with(c.claims(web), "kubernetes.io", kubernetes(web, nil)))
			},
			want: identity.ReasonNotBound,
		},
		"not with a token of a pod without a uid": {
			token: func(c *cluster) string {
				return signed(c.keys["k1"], "k1", with(c.claims(web), "kubernetes.io", kubernetes(web, fields{"name": "web-0"})))
			},
			want: identity.ReasonNotBound,
		},
		"not for a pod that is gone": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { clear(c.cache); clear(c.truth) },
			want: identity.ReasonPodGone, reviews: 1,
		},
		"not for a pod that another one has replaced": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { c.run(other, true) },
			want: identity.ReasonWrongPod, reviews: 1,
		},
		"not for a pod that is unknown while the API server is away": {
			token: func(c *cluster) string { return c.mint(web, "k1") }, setUp: func(c *cluster) { clear(c.cache); c.up = false },
			want: identity.ReasonUnavailable, reviews: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.run(web, true)
			token := tc.token(c)
			until := c.now.Add(life)
			if tc.setUp != nil {
				tc.setUp(c)
			}
			got, err := c.verifier(identity.Limits{}).Verify(t.Context(), token)
			want := web.proxy(until.Local())
			if want.Reviewed = tc.reviews > 0; token == "opaque" {
				want.Expires = c.now.Add(10 * time.Minute)
			}
			if tc.want != "" {
				want = identity.Proxy{}
			}
			if diff := cmp.Diff(want, got); diff != "" || identity.ReasonOf(err) != tc.want {
				t.Errorf("%v, want %q (-want +got):\n%s", err, tc.want, diff)
			}
			if c.reviews != tc.reviews {
				t.Errorf("the API server was asked %d times, want %d", c.reviews, tc.reviews)
			}
		})
	}
}

// A cluster may have authenticators of its own; what they accept is not yet a proxy.
func TestWhatAnAcceptedTokenMustSay(t *testing.T) {
	type status = authenticationv1.TokenReviewStatus
	none := authenticationv1.ExtraValue{}
	tests := map[string]struct {
		accepted func(*status)
		want     identity.Reason
	}{
		"all of it":                        {func(*status) {}, ""},
		"that it is for us":                {func(s *status) { s.Audiences = nil }, identity.ReasonAudience},
		"a service account":                {func(s *status) { s.User.Username = "alice" }, identity.ReasonMalformed},
		"its name":                         {func(s *status) { s.User.Username = "system:serviceaccount:shop" }, identity.ReasonMalformed},
		"a pod":                            {func(s *status) { s.User.Extra["authentication.kubernetes.io/pod-name"] = none }, identity.ReasonNotBound},
		"its uid":                          {func(s *status) { s.User.Extra["authentication.kubernetes.io/pod-uid"] = none }, identity.ReasonNotBound},
		"the pod that the token speaks of": {func(s *status) { s.User.Extra["authentication.kubernetes.io/pod-uid"][0] = "uid-2" }, identity.ReasonPodGone},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			c.accepted = tc.accepted
			c.run(web, false)
			if _, err := c.verifier(identity.Limits{}).Verify(t.Context(), c.mint(web, "k1")); identity.ReasonOf(err) != tc.want {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestBearer(t *testing.T) {
	tests := map[string]struct {
		header []string
		token  string
		want   identity.Reason
	}{
		"a token":                        {[]string{"Bearer abc"}, "abc", ""},
		"the scheme in any case":         {[]string{"bearer abc"}, "abc", ""},
		"no header":                      {nil, "", identity.ReasonMissing},
		"a scheme alone":                 {[]string{"Bearer "}, "", identity.ReasonMissing},
		"another scheme":                 {[]string{"Basic abc"}, "", identity.ReasonMalformed},
		"two headers, of which one lies": {[]string{"Bearer abc", "Bearer def"}, "", identity.ReasonMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := identity.Bearer(tc.header); got != tc.token || identity.ReasonOf(err) != tc.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// The server tells a proxy to come back by this, and the label of a counter is a
// reason that is in the list.
func TestEachReasonHasAText(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range identity.Reasons() {
		err := &identity.Error{Reason: reason}
		if text := err.Error(); seen[text] || strings.HasSuffix(text, ": ") {
			t.Errorf("%s: %q", reason, text)
		}
		seen[err.Error()] = true
		if want := reason == identity.ReasonBusy || reason == identity.ReasonUnavailable || reason == identity.ReasonNoAddress; err.Temporary() != want {
			t.Errorf("%s: Temporary() = %t", reason, err.Temporary())
		}
	}
}
