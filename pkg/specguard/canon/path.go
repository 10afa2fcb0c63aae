// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a [Path].
const (
	MaxPathSegments = 64
	MaxPathBytes    = 1 << 10
)

// Path names one or more places in an object. It is a JSON Pointer (RFC 6901)
// with two more kinds of segment:
//
//	/spec/template/spec/containers/[name=app]/image   the element with that key
//	/spec/ports/[port=80,protocol=TCP]/targetPort     with those keys
//	/spec/drop/[=NET_RAW]                             the scalar element itself
//	/spec/template/spec/containers/*/image            any member or element
//
// A number names a list's element by its position as written. An empty value
// between the brackets also matches an absent key. Escapes: ~0 is ~, ~1 is /,
// ~2 is *, ~3 is [, ~4 is ], ~5 is a comma, ~6 is =; needed only where the
// character would mean something else. The zero Path is the whole object.
type Path struct {
	segments []Segment
}

type segmentKind uint8

const (
	byName segmentKind = iota
	byKeys
	wildcard
)

// Segment is one step of a [Path].
type Segment struct {
	kind segmentKind
	name string // member name, or position in a list
	keys []KeyValue
}

// KeyValue is one key of a list's element and the text of its value: a string
// without quotes, a canonical number, true or false, or empty when absent. An
// empty Key means the element itself.
type KeyValue struct {
	Key, Value string
}

// Field is the segment of a map's member.
func Field(name string) Segment { return Segment{name: name} }

// Position is the segment of a list's element by its position, from 0.
func Position(i int) Segment { return Segment{name: strconv.Itoa(i)} }

// Any is the segment that matches every member or element.
func Any() Segment { return Segment{kind: wildcard} }

// Element is the segment of a list's element by its keys.
func Element(keys ...KeyValue) Segment { return Segment{kind: byKeys, keys: slices.Clone(keys)} }

// Name is the member name or position; empty for other segments.
func (s Segment) Name() string { return s.name }

// Keys are those that identify an element; nil for other segments.
func (s Segment) Keys() []KeyValue { return slices.Clone(s.keys) }

// IsAny tells whether s is the wildcard.
func (s Segment) IsAny() bool { return s.kind == wildcard }

// Equal tells whether two segments are written alike.
func (s Segment) Equal(o Segment) bool {
	return s.kind == o.kind && s.name == o.name && slices.Equal(s.keys, o.keys)
}

// NewPath joins segments; ok is false when the bounds are exceeded.
func NewPath(segments ...Segment) (p Path, ok bool) {
	p = Path{segments: slices.Clone(segments)}
	return p, len(segments) <= MaxPathSegments && len(p.String()) <= MaxPathBytes
}

// Child is p with one more segment; ok is false when the bounds are exceeded.
func (p Path) Child(s Segment) (child Path, ok bool) {
	return NewPath(append(slices.Clip(p.segments), s)...)
}

// Segments are the steps from the root.
func (p Path) Segments() []Segment { return slices.Clone(p.segments) }

// Len is the number of segments.
func (p Path) Len() int { return len(p.segments) }

// Parent is p without its last segment; the root is its own.
func (p Path) Parent() Path { return Path{segments: p.segments[:max(0, len(p.segments)-1)]} }

// Last is the last segment; the zero Segment for the root.
func (p Path) Last() Segment {
	if p.IsRoot() {
		return Segment{}
	}
	return p.segments[len(p.segments)-1]
}

// IsRoot tells whether p is the whole object.
func (p Path) IsRoot() bool { return len(p.segments) == 0 }

// Equal tells whether two paths are written alike.
func (p Path) Equal(q Path) bool {
	return slices.EqualFunc(p.segments, q.segments, Segment.Equal)
}

// Compare orders paths segment by segment, an ancestor before its descendants.
func (p Path) Compare(q Path) int {
	return slices.CompareFunc(p.segments, q.segments, func(a, b Segment) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.name, b.name),
			slices.CompareFunc(a.keys, b.keys, func(x, y KeyValue) int {
				return cmp.Or(strings.Compare(x.Key, y.Key), strings.Compare(x.Value, y.Value))
			}))
	})
}

// Covers tells whether p is q or an ancestor of q, where p may hold wildcards
// and name fewer keys than q. A position never covers an element named by its
// keys, nor the other way round: which is which depends on the object.
func (p Path) Covers(q Path) bool {
	return len(p.segments) <= len(q.segments) && p.agrees(q, Segment.covers)
}

// Overlaps tells whether some place is under both paths: one is the other's
// ancestor, or the same, reading wildcards and missing keys of both as anything.
func (p Path) Overlaps(q Path) bool {
	return p.agrees(q, func(a, b Segment) bool { return a.covers(b) || b.covers(a) || a.mayMeet(b) })
}

func (p Path) agrees(q Path, same func(a, b Segment) bool) bool {
	for i := range min(len(p.segments), len(q.segments)) {
		if !same(p.segments[i], q.segments[i]) {
			return false
		}
	}
	return true
}

func (s Segment) covers(o Segment) bool {
	switch {
	case s.kind == wildcard:
		return true
	case s.kind != o.kind:
		return false
	case s.kind == byName:
		return s.name == o.name
	default:
		return !slices.ContainsFunc(s.keys, func(kv KeyValue) bool { return !slices.Contains(o.keys, kv) })
	}
}

// mayMeet tells whether one element could carry the keys of both.
func (s Segment) mayMeet(o Segment) bool {
	if s.kind != byKeys || o.kind != byKeys {
		return false
	}
	for _, a := range s.keys {
		for _, b := range o.keys {
			if a.Key == b.Key && a.Value != b.Value {
				return false
			}
		}
	}
	return true
}
