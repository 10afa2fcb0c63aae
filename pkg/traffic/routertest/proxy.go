// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Request is one to a Service. A header or a cookie with an empty value is none.
type Request struct {
	Service types.NamespacedName
	// Headers by name, whose letters may be small or capital, and Cookies by name.
	Headers, Cookies map[string]string
}

// Answer says where a request went.
type Answer struct {
	// Divided says that a split decided it; without one the request goes as the Service has it, and
	// Variation is empty.
	Divided   bool
	Variation traffic.Variation
	// Visitor is the value of the cookie that the client is given; "" if it is given none.
	Visitor string
}

// Proxy divides requests in memory. The zero one divides none yet. It may be used by many at once.
type Proxy struct {
	mu      sync.Mutex
	routers map[types.NamespacedName]*Recorder
	// asked counts requests: those that no key decides are drawn by it.
	asked uint64
}

var _ Asker = (*Proxy)(nil)

// Router returns the router of a release.
func (p *Proxy) Router(release types.NamespacedName) traffic.Router {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.routers == nil {
		p.routers = map[types.NamespacedName]*Recorder{}
	}
	if p.routers[release] == nil {
		p.routers[release] = &Recorder{}
	}
	return p.routers[release]
}

// Ask implements Asker.
func (p *Proxy) Ask(r Request) (Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	for _, router := range p.routers {
		split := router.Current()
		if split != nil && r.Service == (types.NamespacedName{Namespace: split.Namespace, Name: split.Service}) {
			variation, visitor := decide(split, r, fmt.Sprint("request-", p.asked))
			at := slices.IndexFunc(split.Variations, func(v traffic.Variation) bool { return v.Name == variation })
			return Answer{Divided: true, Variation: split.Variations[at], Visitor: visitor}, nil
		}
	}
	return Answer{}, nil
}

// decide to which variation a request goes. Its id is what it is drawn by if nothing else decides.
func decide(s *traffic.Split, r Request, id string) (variation, visitor string) {
	if named := r.header(s.Override); s.Shares.Has(named) {
		return named, ""
	}
	if variation, mapped := s.Match.Values[r.header(s.Match.Header)]; mapped {
		return variation, ""
	}
	key := ""
	switch s.Key.Kind {
	case traffic.PerRequest:
	case traffic.ByHeader:
		key = r.header(s.Key.Name)
	case traffic.ByCookie:
		key = r.Cookies[s.Key.Name]
	case traffic.ByVisitor:
		if key = r.Cookies[s.Key.Name]; key == "" {
			visitor = id
		}
	}
	return drawn(s, cmp.Or(key, id)), visitor
}

// drawn is the variation whose range has a key.
func drawn(s *traffic.Split, key string) string {
	sum := sha256.Sum256([]byte(s.Salt + "/" + key))
	at := traffic.Weight(binary.BigEndian.Uint64(sum[:8]) % uint64(traffic.Total)) //nolint:gosec // below Total
	for _, segment := range s.Shares.Layout() {
		if at < segment.Weight {
			return segment.Variation
		}
		at -= segment.Weight
	}
	panic("a layout has less than all keys") // of valid shares it has all
}

func (r Request) header(name string) string {
	for header, value := range r.Headers {
		if name != "" && strings.EqualFold(header, name) {
			return value
		}
	}
	return ""
}
