// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// destination of a request.
type destination struct {
	variation, visitor string
	// forced says that the override decided, and drawn that no key, header or cookie did.
	forced, drawn bool
}

// decide where a request goes. Its id is what it is drawn by if nothing else decides.
func decide(s *traffic.Split, r Request, id string) destination {
	if named := r.header(s.Override); s.Shares.Has(named) {
		return destination{variation: named, forced: true}
	}
	if variation, mapped := s.Match.Values[r.header(s.Match.Header)]; mapped {
		return destination{variation: variation}
	}
	key, visitor := "", ""
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
	return destination{variation: holder(s, cmp.Or(key, id)), visitor: visitor, drawn: key == "" && visitor == ""}
}

// holder is the variation whose range has a key.
func holder(s *traffic.Split, key string) string {
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
