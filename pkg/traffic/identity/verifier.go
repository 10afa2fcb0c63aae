// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"time"

	"github.com/go-jose/go-jose/v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/lru"
)

// API is what is asked of the API server; see [NewAPI]. Its errors hold nothing of a
// token.
type API interface {
	// Keys are the issuer of the cluster's tokens and the public keys.
	Keys(ctx context.Context) (issuer string, keys []jose.JSONWebKey, err error)
	// Review has a token reviewed. An empty audience is that of the API server itself.
	Review(ctx context.Context, token, audience string) (authenticationv1.TokenReviewStatus, error)
}

// Config is what a Verifier needs.
type Config struct {
	API    API
	Pods   Pods
	Limits Limits
	// Now is the time; nil for the clock of the machine.
	Now func() time.Time
}

// Verifier says whose a token is. It may be used by many at once.
type Verifier struct {
	pods             Pods
	expected         Expected
	now              func() time.Time
	keys             *keyring
	reviews          *reviews
	proven, unproven *lane
}

// New makes a Verifier. It has no goroutine of its own, but for the time of a read
// of the keys.
func New(c Config) *Verifier {
	if c.Now == nil {
		c.Now = time.Now
	}
	limits := c.Limits.orDefault()
	return &Verifier{
		pods: c.Pods, expected: Expected{Audience: Audience}, now: c.Now,
		keys:    &keyring{api: c.API, now: c.Now},
		reviews: &reviews{api: c.API, audience: Audience, now: c.Now, answers: lru.New(limits.remembered())},
		proven:  newLane(limits), unproven: newLane(limits),
	}
}

// Expected says whose tokens are good.
type Expected struct {
	Audience string
	// Account says which service account is; nil for every one.
	Account func(namespace, name string) bool
}

// For is a Verifier of other tokens, with the same keys and pods. Their reviews have
// bounds of their own.
func (v *Verifier) For(expected Expected, l Limits) *Verifier {
	l = l.orDefault()
	return &Verifier{
		pods: v.pods, expected: expected, now: v.now, keys: v.keys,
		reviews: &reviews{api: v.reviews.api, audience: expected.Audience, now: v.now, answers: lru.New(l.remembered())},
		proven:  newLane(l), unproven: newLane(l),
	}
}

// ReadKeys reads the keys, if there are none, and returns why the last read failed;
// one that is under way is waited for.
// It is worth calling before proxies are let in, since without keys each of them
// costs a review, and now and then to know whether it still works.
func (v *Verifier) ReadKeys(ctx context.Context) error { return v.keys.await(ctx) }

// Verify says whose a token is. Its error is always an [*Error].
func (v *Verifier) Verify(ctx context.Context, token string) (Proxy, error) {
	p, err := v.verify(ctx, token)
	if err == nil && v.expected.Account != nil && !v.expected.Account(p.Namespace, p.ServiceAccount) {
		return Proxy{}, refuse(ReasonAccount)
	}
	return p, err
}

func (v *Verifier) verify(ctx context.Context, token string) (Proxy, error) {
	said, err := read(token, v.expected.Audience, v.now())
	if err != nil {
		return Proxy{}, err
	}
	proven, err := v.signed(ctx, token, said)
	if err != nil {
		return Proxy{}, err
	}
	if proven && v.there(said.proxy) {
		return said.proxy, nil
	}
	return v.review(ctx, token, said, proven)
}

// signed says whether the signature is known to be good; it is an error if it is
// known to be wrong. A key of the API server under the name of another issuer proves
// nothing: which further issuers count, it alone knows.
func (v *Verifier) signed(ctx context.Context, token string, said *claimed) (bool, error) {
	if said == nil {
		return false, nil
	}
	set := v.keys.find(ctx, said.key)
	if set == nil {
		return false, nil
	}
	if !set.proves(token, said) {
		return false, refuse(ReasonSignature)
	}
	return said.issuer == set.issuer, nil
}

// there says that the pod is in the cache as the token has it.
func (v *Verifier) there(p Proxy) bool {
	uid, account, found := v.pods.Pod(p.Namespace, p.Pod)
	return found && uid == p.PodUID && account == p.ServiceAccount
}

// review lets the API server decide. Even another pod of that name in the cache says
// nothing yet: the cache may be the older of the two.
func (v *Verifier) review(ctx context.Context, token string, said *claimed, proven bool) (Proxy, error) {
	if err := context.Cause(ctx); err != nil {
		return Proxy{}, &Error{Reason: ReasonUnavailable, cause: err}
	}
	l := v.unproven
	if proven {
		l = v.proven
	}
	a, err := v.reviews.ask(ctx, token, l)
	if err != nil {
		return Proxy{}, err
	}
	if said != nil {
		a = a.about(said.proxy)
	}
	if proven && a.why == ReasonRefused {
		a.why = v.gone(said.proxy)
	}
	if a.why != "" {
		return Proxy{}, refuse(a.why)
	}
	return a.proxy, nil
}

// about is the answer, given what the token says of itself: both have to agree.
func (a answer) about(said Proxy) answer {
	said.Reviewed, a.proxy.Expires = true, said.Expires
	if a.why == "" && a.proxy != said {
		a.why = ReasonRefused
	}
	return a
}

// gone says why the API server refuses a token that it has signed.
func (v *Verifier) gone(p Proxy) Reason {
	if uid, _, found := v.pods.Pod(p.Namespace, p.Pod); found && uid != p.PodUID {
		return ReasonWrongPod
	}
	return ReasonPodGone
}
