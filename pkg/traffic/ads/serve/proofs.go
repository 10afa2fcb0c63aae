// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"slices"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Proofs remember which versions some Envoy has acknowledged. They implement
// [ads.Proofs] for all streams of a server.
type Proofs struct {
	mu sync.RWMutex
	// acknowledged has some versions of a name: of the latest decision that which was
	// acknowledged last is last.
	acknowledged map[ads.Key][]*ads.Resource
}

// NewProofs that know of none.
func NewProofs() *Proofs { return &Proofs{acknowledged: map[ads.Key][]*ads.Resource{}} }

// versions is how many of a name are remembered: the one that is there, the one before
// it, and the one that a rollback leads to.
const versions = 3

// Proven implements ads.Proofs.
func (p *Proofs) Proven(r *ads.Resource) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return slices.ContainsFunc(p.acknowledged[ads.Key{Type: r.Type, Name: r.Name}], func(c *ads.Resource) bool { return c.Version == r.Version })
}

// Prove implements ads.Proofs.
func (p *Proofs) Prove(r *ads.Resource) {
	k := ads.Key{Type: r.Type, Name: r.Name}
	if last := p.Last(k); last != nil && last.Version == r.Version { // as most are
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := slices.DeleteFunc(slices.Clone(p.acknowledged[k]), func(c *ads.Resource) bool { return c.Version == r.Version })
	known = append(known, r)
	// A proxy that is behind acknowledges an earlier decision later.
	slices.SortStableFunc(known, func(a, b *ads.Resource) int { return cmp.Compare(a.Version.Sequence, b.Version.Sequence) })
	p.acknowledged[k] = known[max(0, len(known)-versions):]
}

// Last implements ads.Proofs.
func (p *Proofs) Last(k ads.Key) *ads.Resource {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if c := p.acknowledged[k]; len(c) > 0 {
		return c[len(c)-1]
	}
	return nil
}

// Forget what is no longer there, so that names that come and go need no memory.
func (p *Proofs) Forget(gone []ads.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range gone {
		delete(p.acknowledged, k)
	}
}
