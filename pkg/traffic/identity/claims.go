// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// maxToken bounds a token, in bytes; those of Kubernetes have one to two thousand.
	maxToken = 8 << 10
	// leeway is by how much the clock of who signed may differ from ours.
	leeway = 10 * time.Second
)

// algorithms are those that Kubernetes signs with.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// claimed is what a token says. Nothing of it is true before its signature is.
type claimed struct {
	proxy                  Proxy
	issuer, key, algorithm string
	verify                 func(key any) error
}

// claims are those of a service account token
// (https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens).
type claims struct {
	jwt.Claims
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount object `json:"serviceaccount"`
		Pod            object `json:"pod"`
	} `json:"kubernetes.io"`
}

type object struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// read takes a token apart, and refuses what no signature could make good. The
// result is nil for an opaque token, of which only who made it knows anything.
func read(token, audience string, now time.Time) (*claimed, error) {
	switch {
	case token == "":
		return nil, refuse(ReasonMissing)
	case len(token) > maxToken, strings.ContainsFunc(token, foreign):
		return nil, refuse(ReasonMalformed)
	case !strings.Contains(token, "."):
		return nil, nil //nolint:nilnil // there is nothing to read, and nothing wrong
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, refuse(ReasonMalformed)
	}
	var said claims
	if err := parsed.UnsafeClaimsWithoutVerification(&said); err != nil {
		return nil, refuse(ReasonMalformed)
	}
	if why := said.wrong(audience, now); why != "" {
		return nil, refuse(why)
	}
	header := parsed.Headers[0]
	return &claimed{
		proxy: said.proxy(), issuer: said.Issuer, key: header.KeyID, algorithm: header.Algorithm,
		verify: func(key any) error { return parsed.Claims(key) },
	}, nil
}

// foreign says that a rune has no place in a bearer token (RFC 6750, 2.1).
func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~+/=", r)
}

// wrong is what is wrong with the claims; empty if nothing is.
func (c *claims) wrong(audience string, now time.Time) Reason {
	err := c.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{audience}, Time: now}, leeway)
	account, pod := c.Kubernetes.ServiceAccount, c.Kubernetes.Pod
	switch {
	case errors.Is(err, jwt.ErrInvalidAudience):
		return ReasonAudience
	case err != nil:
		return ReasonExpired
	case c.Expiry == nil, c.Kubernetes.Namespace == "", account.Name == "", account.UID == "",
		c.Subject != userPrefix+c.Kubernetes.Namespace+":"+account.Name:
		return ReasonMalformed
	case pod.Name == "" || pod.UID == "":
		return ReasonNotBound
	}
	return ""
}

func (c *claims) proxy() Proxy {
	k := c.Kubernetes
	return Proxy{
		Namespace: k.Namespace, ServiceAccount: k.ServiceAccount.Name, Pod: k.Pod.Name, PodUID: k.Pod.UID,
		Expires: c.Expiry.Time(),
	}
}
