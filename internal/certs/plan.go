// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

const (
	// DefaultSettleTime is how long a bundle has been seen published before a
	// certificate relies on it. The authorities that an API server trusts show in a
	// handshake alone, and a refused handshake is a lost review. API servers learn of
	// a changed configuration by a watch like that of the keeper, within 10 ms as
	// measured. An API server that lags has this time.
	DefaultSettleTime = time.Minute
	// maxAuthorities bounds the bundle: the signing one, the one before it, and
	// one more for two forced changes in a row.
	maxAuthorities = 3
)

// State is the input of Decide.
type State struct {
	// Stored is the content of the Secret; nil when the Secret holds no authority.
	Stored *Material
	// Remembered is the material that this process served last; nil at first.
	Remembered *Material
	// Published are the caBundles of all webhooks of our configurations.
	Published [][]byte
	// PublishedSince is when all of Published were first seen to be the bundle
	// of Stored; zero when they are not.
	PublishedSince time.Time
	// Settle is how long after that a certificate may rely on it.
	Settle time.Duration
	// Names are the DNS names and IP addresses that the certificate must have.
	Names []string
}

// Plan has the steps that are due, in this order. The zero Plan has no step.
type Plan struct {
	// NewAuthority: make an authority and let it sign from now on.
	NewAuthority bool
	// Keep are the older authorities that stay in the bundle.
	Keep []*x509.Certificate
	// DropOld: only the signing authority stays in the bundle.
	DropOld bool
	// NewLeaf: issue a serving certificate by the signing authority.
	NewLeaf bool
	// Next is the time of the next decision without a change before.
	Next time.Time
}

// Writes says that the Secret changes.
func (p Plan) Writes() bool { return p.NewAuthority || p.DropOld || p.NewLeaf }

// Decide returns the steps that are due at a time. A step is due once: after the
// plan was carried out, the same time gives a plan without writes.
func Decide(s State, now time.Time) Plan {
	m := s.Stored
	switch {
	case m == nil && s.Remembered != nil:
		// A deletion of the Secret forces a change of authority. All replicas serve the
		// old leaf until the new bundle has settled.
		return Plan{
			NewAuthority: true,
			Keep:         keep(s.Remembered.Authorities, s.Remembered.Leaf, now),
			NewLeaf:      !serves(s.Remembered, s.Names, now),
			Next:         now.Add(s.Settle),
		}
	case m == nil:
		return Plan{NewAuthority: true, Keep: keep(publishedAuthorities(s.Published), nil, now), NewLeaf: true, Next: now.Add(s.Settle)}
	case m.SignerKey == nil || !now.Before(renewAt(m.Authorities[0])) || now.Before(m.Authorities[0].NotBefore):
		// A wrong clock made an authority of the future. No client accepts its
		// signatures.
		return Plan{NewAuthority: true, Keep: keep(m.Authorities, m.Leaf, now), NewLeaf: !serves(m, s.Names, now), Next: now.Add(s.Settle)}
	default:
		return decideLeaf(s, now)
	}
}

// decideLeaf is Decide when the signing authority is fine.
func decideLeaf(s State, now time.Time) Plan {
	m := s.Stored
	signer := m.Authorities[0]
	var p Plan
	switch {
	case !serves(m, s.Names, now):
		p.NewLeaf = true
	case m.Leaf.Leaf.CheckSignatureFrom(signer) != nil:
		// Signed by an older authority: wait until all API servers know the new one.
		if s.PublishedSince.IsZero() {
			return Plan{Next: now.Add(time.Second)}
		}
		settled := s.PublishedSince.Add(s.Settle)
		if now.Before(settled) {
			return Plan{Next: settled}
		}
		p.NewLeaf = true
	default:
		p.NewLeaf = !now.Before(renewAt(m.Leaf.Leaf))
	}
	drop := createdAt(signer).Add(LeafLife)
	if len(m.Authorities) > 1 && !p.NewLeaf && !now.Before(drop) {
		p.DropOld = true
	}
	p.Next = renewAt(signer)
	if !p.NewLeaf {
		p.Next = earlier(p.Next, renewAt(m.Leaf.Leaf))
	}
	if len(m.Authorities) > 1 && !p.DropOld {
		p.Next = earlier(p.Next, later(drop, now.Add(time.Second)))
	}
	return p
}

// Carry makes the material of a plan from the present material.
func Carry(p Plan, s State, now time.Time) (*Material, error) {
	m := &Material{}
	switch {
	case s.Stored != nil:
		*m = *s.Stored
	case s.Remembered != nil:
		*m = *s.Remembered
	}
	if p.NewAuthority {
		authority, key, err := newAuthority(now)
		if err != nil {
			return nil, err
		}
		m.Authorities = append([]*x509.Certificate{authority}, p.Keep...)
		m.SignerKey = key
	}
	if p.DropOld {
		m.Authorities = m.Authorities[:1]
	}
	if p.NewLeaf {
		leaf, err := newLeaf(now, s.Names, m.Authorities[0], m.SignerKey)
		if err != nil {
			return nil, err
		}
		m.Leaf = leaf
	}
	return m, nil
}

// serves says that the leaf is valid now, for all names, under some authority
// of the bundle.
func serves(m *Material, names []string, now time.Time) bool {
	return m.Leaf != nil && verify(m.Leaf, m.Authorities, names, now) == nil
}

// keep picks the authorities that stay beside a new one: the one that signed
// the leaf in service before all others, then the newest.
func keep(authorities []*x509.Certificate, leaf *tls.Certificate, now time.Time) []*x509.Certificate {
	signed := func(a *x509.Certificate) bool { return leaf != nil && leaf.Leaf.CheckSignatureFrom(a) == nil }
	candidates := slices.Clone(authorities)
	slices.SortStableFunc(candidates, func(a, b *x509.Certificate) int {
		switch {
		case signed(a) == signed(b):
			return 0
		case signed(a):
			return -1
		default:
			return 1
		}
	})
	var out []*x509.Certificate
	for _, a := range candidates {
		if now.Before(a.NotAfter) && a.IsCA && len(out) < maxAuthorities-1 && !slices.ContainsFunc(out, a.Equal) {
			out = append(out, a)
		}
	}
	return out
}

// publishedAuthorities reads the authorities that the configurations trust at present.
// It leaves out unreadable bundles, which no client trusts.
func publishedAuthorities(bundles [][]byte) []*x509.Certificate {
	var out []*x509.Certificate
	for _, b := range bundles {
		if authorities, err := parseBundle(b); err == nil {
			out = append(out, authorities...)
		}
	}
	return out
}

func published(bundles [][]byte, want []byte) bool {
	return len(bundles) > 0 && !slices.ContainsFunc(bundles, func(b []byte) bool { return !bytes.Equal(b, want) })
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
