// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Secret that cert-manager writes changes authority and certificate at once, and
// nobody but us publishes its authority in a ConfigMap. So both authorities are
// published for a while, and the certificate of before, which is in memory, is
// served until those that call us have had time to read the new one.

// errNoAuthority says that an issuer does not tell its authority.
var errNoAuthority = errors.New("ca.crt of the secret holds no authority: the issuer must be one that writes it")

// publishes says that the bundle is ours to publish.
func (c *Config) publishes() bool { return c.Mode == ModeSelfManaged || c.ConfigMapName != "" }

// keepIssued publishes the authority of a certificate that somebody else issued, and
// says when to look again.
func (k *Keeper) keepIssued(ctx context.Context) (time.Time, error) {
	now := k.clock.Now()
	data, ok := k.watch.secretData()
	if !ok {
		return now.Add(time.Hour), nil // The watch tells.
	}
	issued, err := parseBundle(data[keyCABundle])
	if err != nil || len(issued) == 0 {
		return time.Time{}, errors.Join(errNoAuthority, err)
	}
	have := k.watch.bundles()
	wide := widen(issued, have, now)
	bundle, next := DecideIssued(issued, wide, k.seePublished(Bundle(wide), have, now), k.cfg.Settle, now)
	if err := k.watch.publisher.Publish(ctx, Bundle(bundle)); err != nil {
		return time.Time{}, fmt.Errorf("publishing the bundle: %w", err)
	}
	return next, nil
}

// widen is the bundle of a change: the authorities that were issued, and those that
// are published beside them.
func widen(issued []*x509.Certificate, bundles [][]byte, now time.Time) []*x509.Certificate {
	wide := slices.Clone(issued)
	for _, a := range publishedAuthorities(bundles) {
		if now.Before(a.NotAfter) && len(wide) < len(issued)+maxAuthorities-1 && !slices.ContainsFunc(wide, a.Equal) {
			wide = append(wide, a)
		}
	}
	return wide
}

// DecideIssued says which authorities to publish, and when to decide again: those of
// before leave when the wide bundle was published, since that time, for as long as
// every replica takes to change its certificate, and as long again.
func DecideIssued(issued, wide []*x509.Certificate, since time.Time, settle time.Duration, now time.Time) (bundle []*x509.Certificate, next time.Time) {
	switch over := since.Add(2 * settle); {
	case len(wide) == len(issued):
		return issued, now.Add(time.Hour)
	case since.IsZero():
		return wide, now.Add(settle) // The watch tells when it is published.
	case now.Before(over):
		return wide, over
	default:
		return issued, now.Add(time.Hour)
	}
}

// settling knows since when each authority is published, and wakes when one settles.
// The zero value is ready.
type settling struct {
	mu    sync.Mutex
	since map[string]time.Time
	timer *time.Timer
}

// settled are the authorities of bundles that were published for settle, or when the
// first bundle was seen; wake is called when the next one is.
func (s *settling) settled(bundles [][]byte, settle time.Duration, now time.Time, wake func()) []*x509.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]time.Time{}
	var out []*x509.Certificate
	var next time.Time
	for _, a := range publishedAuthorities(bundles) {
		since, known := s.since[string(a.Raw)]
		if !known && s.since != nil {
			since = now
		}
		seen[string(a.Raw)] = since
		switch over := since.Add(settle); {
		case !now.Before(over):
			out = append(out, a)
		case next.IsZero() || over.Before(next):
			next = over
		}
	}
	if len(seen) > 0 {
		s.since = seen
	}
	s.stopTimer()
	if !next.IsZero() {
		s.timer = time.AfterFunc(next.Sub(now), wake)
	}
	return out
}

func (s *settling) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopTimer()
}

func (s *settling) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
