// SPDX-License-Identifier: Apache-2.0

package envoyxds

import (
	"maps"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// Division holds all of a [traffic.Routing] that decides where a request goes, in the order in which
// a proxy decides.
type Division struct {
	// Forced come before the segments; the first one that matches counts.
	Forced []Forced
	// Segments divide the keys of visitors, from 0 to [traffic.Total].
	Segments []traffic.Segment
	// Key and Salt give a visitor a key: xxHash64 of the salt, a | and the value, modulo
	// [traffic.Total]. Both are empty if each request is drawn by itself.
	Key  traffic.Key
	Salt string
}

// Forced sends a request to a variation if the request has the header once, with that value.
type Forced struct{ Header, Value, Variation string }

// divisionOf returns nil without a routing.
func divisionOf(r *traffic.Routing) *Division {
	if r == nil {
		return nil
	}
	d := &Division{Segments: r.Shares.Layout()}
	if r.Override != "" {
		for _, s := range r.Shares {
			d.Forced = append(d.Forced, Forced{r.Override, s.Variation, s.Variation})
		}
	}
	for _, value := range slices.Sorted(maps.Keys(r.Match.Values)) {
		d.Forced = append(d.Forced, Forced{r.Match.Header, value, r.Match.Values[value]})
	}
	switch r.Key.Kind {
	case traffic.PerRequest:
	case traffic.ByHeader, traffic.ByCookie:
		d.Key, d.Salt = traffic.Key{Kind: r.Key.Kind, Name: r.Key.Name}, r.Salt
	case traffic.ByVisitor:
		d.Key, d.Salt = r.Key, r.Salt
	}
	return d
}
