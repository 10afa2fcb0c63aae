// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"iter"
)

// Value is a cursor: one value of a [Document], valid until its Release. The
// zero Value is absent, and all methods work on it, so lookups chain.
type Value struct {
	doc   *Document
	mask  *mask
	index uint32
}

func (v Value) node() *node { return &v.doc.nodes[v.index] }

func (v Value) at(index uint32) Value { return Value{doc: v.doc, mask: v.mask, index: index} }

// Kind is the JSON type, or Absent.
func (v Value) Kind() Kind {
	if v.doc == nil {
		return Absent
	}
	return v.node().kind
}

// Exists tells whether v stands for a value, null included.
func (v Value) Exists() bool { return v.doc != nil }

// Covered tells whether the value has a part in the hash. Not covered are: the
// top-level apiVersion, kind, metadata and status, by pl1 null members of maps, what
// the removal table takes out, and excluded paths. Only the value itself is
// judged, not what contains it.
func (v Value) Covered() bool {
	return v.doc != nil && v.node().flags&ignored == 0 && !v.mask.removed(v.index)
}

// Allocated tells whether the removal table takes the value out, because the
// server decides it.
func (v Value) Allocated() bool { return v.doc != nil && v.node().flags&removed != 0 }

// Len is the number of children of a map or list, covered or not; else 0.
func (v Value) Len() int {
	if v.Kind() < List {
		return 0
	}
	return int(v.node().count)
}

// Index is the i-th child: in key order in a map, as written in a list.
// Absent when i is out of range.
func (v Value) Index(i int) Value {
	if i < 0 || i >= v.Len() {
		return Value{}
	}
	return v.at(v.node().first + uint32(i))
}

// Get is a map's member, covered or not; absent when there is none.
func (v Value) Get(key string) Value {
	if v.Kind() != Map {
		return Value{}
	}
	index, ok := v.doc.member(v.node(), key)
	if !ok {
		return Value{}
	}
	return v.at(index)
}

// All gives the children in the order of Index.
func (v Value) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for i := range v.Len() {
			if !yield(v.Index(i)) {
				return
			}
		}
	}
}

// Key is the decoded key of a value that is a map's member; else empty. It
// points into the document.
func (v Value) Key() []byte {
	if v.doc == nil {
		return nil
	}
	return v.doc.keyOf(v.node())
}

// Bytes is the decoded string, the canonical number, or true, false, null;
// nil for maps, lists and absent values. It points into the document.
func (v Value) Bytes() []byte {
	if k := v.Kind(); k == Absent || k >= List {
		return nil
	}
	return v.doc.textOf(v.node())
}

// Text is Bytes as a string of its own.
func (v Value) Text() string { return string(v.Bytes()) }

// Raw is the value as written, for maps and lists; nil otherwise. It points
// into the body.
func (v Value) Raw() []byte {
	if v.Kind() < List {
		return nil
	}
	return v.doc.src[v.node().start:v.node().end]
}

// Mode says what the order of a list means; Atomic for all other values.
func (v Value) Mode() ListMode {
	if v.doc == nil {
		return Atomic
	}
	return v.node().mode
}

// ElementSegment is the path segment that identifies the i-th element of a set
// or keyed list: its value, or its keys; a position for other lists. An absent
// key is written as an empty one.
func (v Value) ElementSegment(i int) Segment {
	child := v.Index(i)
	switch v.Mode() {
	case Set:
		return Segment{kind: byKeys, keys: []KeyValue{{Value: scalarText(child)}}}
	case Keyed, KeyedOrdered:
		names := schemaTypes[v.node().list].keys
		keys := make([]KeyValue, len(names))
		for k, name := range names {
			keys[k] = KeyValue{Key: name, Value: scalarText(child.Get(name))}
		}
		return Segment{kind: byKeys, keys: keys}
	case Atomic:
	}
	return Position(i)
}

// scalarText is the text of a value as a segment has it.
func scalarText(v Value) string { return string(scalarBytes(v)) }

// scalarBytes is nothing for null: it equals absence.
func scalarBytes(v Value) []byte {
	if v.Kind() == Null {
		return nil
	}
	return v.Bytes()
}

// Follow is the value at a path below v, where each segment matches exactly one
// child; absent otherwise. A wildcard matches only an only child.
func (v Value) Follow(p Path) Value {
	for i := range p.segments {
		next := Value{}
		for position := range v.Len() {
			child := v.Index(position)
			if !p.segments[i].matches(&probe{parent: v, child: child, position: position}) {
				continue
			}
			if next.Exists() {
				return Value{}
			}
			next = child
		}
		if v = next; !v.Exists() {
			return v
		}
	}
	return v
}

// Equal tells whether two values have the same canonical form.
func (v Value) Equal(o Value) bool {
	if v.Kind() != o.Kind() {
		return false
	}
	if v.Kind() == Absent {
		return true
	}
	a, b := v.node(), o.node()
	if v.Kind() < List {
		return bytes.Equal(v.doc.textOf(a), o.doc.textOf(b))
	}
	if a.flags&b.flags&verbatim != 0 && v.mask.clean(v.index) && o.mask.clean(o.index) {
		return bytes.Equal(v.Raw(), o.Raw())
	}
	return v.equalChildren(o)
}

func (v Value) equalChildren(o Value) bool {
	i, j := 0, 0
	for {
		var x, y Value
		x, i = v.nextCovered(i)
		y, j = o.nextCovered(j)
		switch {
		case !x.Exists() || !y.Exists():
			return x.Exists() == y.Exists()
		case v.Kind() == Map && !bytes.Equal(x.Key(), y.Key()):
			return false
		case !x.Equal(y):
			return false
		}
	}
}

// nextCovered is the first covered child at or after position i of the
// canonical order, with the position after it.
func (v Value) nextCovered(i int) (Value, int) {
	for n := v.node(); i < int(n.count); i++ {
		if child := v.at(v.doc.canonicalChild(n, uint32(i))); child.Covered() {
			return child, i + 1
		}
	}
	return Value{}, i
}
