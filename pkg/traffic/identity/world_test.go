// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://cluster.example"
	life     = 10 * time.Minute
	someWait = 10 * time.Second // how long nobody reads the keys again
)

// pod is one that a token can be bound to.
type pod struct{ namespace, name, uid, account string }

var web = pod{"shop", "web-0", "uid-1", "front"}

func (p pod) key() string { return p.namespace + "/" + p.name }

func (p pod) proxy(until time.Time) identity.Proxy {
	return identity.Proxy{Namespace: p.namespace, ServiceAccount: p.account, Pod: p.name, PodUID: p.uid, Expires: until}
}

// cluster is an API server, its pods, and our cache of them. What its reviews say is
// what it knows of the tokens that it has made; it checks no signature.
type cluster struct {
	mu      sync.Mutex
	now     time.Time
	up      bool
	noKeys  bool // the keys cannot be read, reviews can
	truth   map[string]pod
	cache   map[string]pod
	keys    map[string]crypto.Signer
	read    map[string]bool // the keys of the last answer
	minted  map[string]minted
	reads   []time.Time
	reviews int
	hold    chan struct{} // a review waits for it, if it is there
	// accepted changes what a review says of a token that it accepts.
	accepted func(*authenticationv1.TokenReviewStatus)
}

type minted struct {
	pod      pod
	key      string
	audience string
	until    time.Time
}

func newCluster() *cluster {
	c := &cluster{
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), up: true,
		truth: map[string]pod{}, cache: map[string]pod{}, keys: map[string]crypto.Signer{}, minted: map[string]minted{},
	}
	c.keys["k1"] = newKey()
	return c
}

func (c *cluster) verifier(limits identity.Limits) *identity.Verifier {
	return identity.New(identity.Config{API: c, Pods: c, Limits: limits, Now: c.clock})
}

func newKey() crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func (c *cluster) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *cluster) wait(d time.Duration) { c.change(func() { c.now = c.now.Add(d) }) }

// change is how a test changes what the keys are read from beside it.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// run starts a pod, which the cache sees or not.
func (c *cluster) run(p pod, cached bool) {
	c.truth[p.key()] = p
	if cached {
		c.cache[p.key()] = p
	}
}

// Pod implements identity.Pods.
func (c *cluster) Pod(namespace, name string) (uid, account string, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, found := c.cache[namespace+"/"+name]
	return p.uid, p.account, found
}

var errAway = errors.New("connection refused")

// Keys implements identity.API.
func (c *cluster) Keys(context.Context) (string, []jose.JSONWebKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, c.now)
	if !c.up || c.noKeys {
		return "", nil, errAway
	}
	var keys []jose.JSONWebKey
	c.read = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.keys)) {
		keys = append(keys, jose.JSONWebKey{Key: c.keys[name].Public(), KeyID: name, Use: "sig"})
		c.read[name] = true
	}
	return issuer, keys, nil
}

// Review implements identity.API.
func (c *cluster) Review(_ context.Context, token, audience string) (authenticationv1.TokenReviewStatus, error) {
	if c.hold != nil {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reviews++
	if !c.up {
		return authenticationv1.TokenReviewStatus{}, errAway
	}
	m, ok := c.minted[token]
	if !ok || c.keys[m.key] == nil || c.truth[m.pod.key()] != m.pod || m.audience != audience || c.now.After(m.until) {
		return authenticationv1.TokenReviewStatus{}, nil
	}
	status := authenticationv1.TokenReviewStatus{
		Authenticated: true, Audiences: []string{audience},
		User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:" + m.pod.namespace + ":" + m.pod.account,
			Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {m.pod.name}, "authentication.kubernetes.io/pod-uid": {m.pod.uid},
			},
		},
	}
	if c.accepted != nil {
		c.accepted(&status)
	}
	return status, nil
}

type fields = map[string]any

// claims are those of a good token of a pod.
func (c *cluster) claims(p pod) fields {
	return fields{
		"iss": issuer, "sub": "system:serviceaccount:" + p.namespace + ":" + p.account, "aud": []string{identity.Audience},
		"exp": c.now.Add(life).Unix(), "nbf": c.now.Unix(), "iat": c.now.Unix(),
		"kubernetes.io": fields{
			"namespace": p.namespace, "serviceaccount": fields{"name": p.account, "uid": "sa"}, "pod": fields{"name": p.name, "uid": p.uid},
		},
	}
}

// mint makes a good token, which reviews accept.
func (c *cluster) mint(p pod, key string) string {
	token := signed(c.keys[key], key, c.claims(p))
	c.minted[token] = minted{p, key, identity.Audience, c.now.Add(life)}
	return token
}

func signed(key crypto.Signer, name string, claims fields) string {
	algorithm := jose.ES256
	if _, ok := key.(*rsa.PrivateKey); ok {
		algorithm = jose.RS256
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: name}}, nil)
	if err != nil {
		panic(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		panic(err)
	}
	return token
}
