// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"bytes"
	"cmp"
	"slices"
)

// elementKey is an element of a set or keyed list with what identifies it:
// indexes in Document.nodes plus one, 0 for a missing key.
type elementKey struct {
	node uint32
	keys [maxListKeys]uint32
}

// orderList decides what the order of a closed list means, and lays down the
// canonical order when it is not the written one. A list that does not look as
// its schema says keeps its order: guessing could hide a change.
func (p *parser) orderList(n *node, o *opened, typ typeID) {
	t := &schemaTypes[typ]
	if !p.collectKeys(n, t) {
		return
	}
	d := p.doc
	n.mode, n.list = t.mode, typ
	if t.references && d.hasReference(n, o.text) {
		n.mode = KeyedOrdered
	}
	if n.mode == KeyedOrdered || n.count < 2 || !d.sortElements(max(1, len(t.keys))) {
		return
	}
	p.impure++
	n.flags &^= verbatim
	n.order = uint32(len(d.order)) + 1
	for _, key := range d.memberKeys {
		d.order = append(d.order, d.sortKeys[key.index].node)
	}
}

// sortElements puts the collected keys in canonical order, in
// Document.memberKeys; false when that is the written order.
func (d *Document) sortElements(count int) bool {
	elements := d.sortKeys
	skip := d.commonPrefix()
	keys := d.memberKeys[:0]
	for i := range elements {
		keys = append(keys, memberKey{prefix: d.elementPrefix(elements[i].keys[0], skip), index: uint32(i)})
	}
	d.memberKeys = keys
	compare := func(a, b memberKey) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := d.compareKeys(&elements[a.index], &elements[b.index], count); c != 0 {
			return c
		}
		return cmp.Compare(a.index, b.index) // equal elements keep their order
	}
	for i := 1; i < len(keys); i++ {
		if keys[i-1].prefix > keys[i].prefix || keys[i-1].prefix == keys[i].prefix && compare(keys[i-1], keys[i]) > 0 {
			sortByPrefix(keys, compare)
			return true
		}
	}
	return false
}

// commonPrefix is how many bytes all strings among the first keys begin with:
// names are often alike where a prefix of eight bytes would look.
func (d *Document) commonPrefix() int {
	var first []byte
	length := -1
	for i := range d.sortKeys {
		rank, text := d.rankScalar(d.sortKeys[i].keys[0])
		switch {
		case rank != String:
		case length < 0:
			first, length = text, len(text)
		default:
			length = min(length, len(text))
			for at := range first[:length] {
				if first[at] != text[at] {
					length = at
					break
				}
			}
		}
	}
	return max(length, 0)
}

// elementPrefix orders as rankScalar does, but for texts that begin alike: the
// rank, then seven bytes of the text; of strings, after those skipped.
func (d *Document) elementPrefix(i uint32, skip int) uint64 {
	rank, text := d.rankScalar(i)
	if rank == String {
		text = text[skip:]
	}
	return uint64(rank)<<56 | keyPrefixIn(text, 0, uint32(len(text)))>>8
}

// collectKeys fills Document.sortKeys; false when an element does not fit.
func (p *parser) collectKeys(n *node, t *schemaType) bool {
	d := p.doc
	d.sortKeys = slices.Grow(d.sortKeys[:0], int(n.count))[:n.count]
	for i := range d.sortKeys {
		at := n.first + uint32(i)
		e, child := &d.sortKeys[i], &d.nodes[at]
		e.node, e.keys = at, [maxListKeys]uint32{}
		if t.mode == Set {
			if child.kind >= List {
				return false
			}
			e.keys[0] = at + 1
			continue
		}
		if child.kind != Map || !d.elementKeys(e, child, t.keys) {
			return false
		}
	}
	return true
}

// elementKeys looks the merge keys up; false when one is no scalar.
func (d *Document) elementKeys(e *elementKey, element *node, names []string) bool {
	for k, name := range names {
		at, ok := d.member(element, name)
		if !ok {
			continue
		}
		if d.nodes[at].kind >= List {
			return false
		}
		e.keys[k] = at + 1
	}
	return true
}

func (d *Document) compareKeys(a, b *elementKey, count int) int {
	for i := range count {
		if c := d.compareScalars(a.keys[i], b.keys[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compareScalars orders absent and null, then false, true, numbers by their
// canonical text, strings by their UTF-8 bytes. Indexes are plus one, 0 is
// absent.
func (d *Document) compareScalars(a, b uint32) int {
	ra, ta := d.rankScalar(a)
	rb, tb := d.rankScalar(b)
	if ra != rb {
		return cmp.Compare(ra, rb)
	}
	return bytes.Compare(ta, tb)
}

func (d *Document) rankScalar(i uint32) (Kind, []byte) {
	if i == 0 || d.nodes[i-1].kind == Null {
		return Absent, nil
	}
	n := &d.nodes[i-1]
	return n.kind, d.textOf(n) // "false" < "true"
}

// hasReference tells whether a value of an env list contains "$(", which makes
// it depend on the variables before it. "$$(" is an escaped one, but counts
// too: keeping the order of one list too many hides nothing. Mark is where the
// decoded text began with the list: if there is none, and the source of the
// list has no "$(", no value has.
func (d *Document) hasReference(n *node, mark int) bool {
	reference := []byte("$(")
	if len(d.text) == mark && !bytes.Contains(d.src[n.start:n.end], reference) {
		return false
	}
	for i := n.first; i < n.first+n.count; i++ {
		at, ok := d.member(&d.nodes[i], "value")
		if !ok || d.nodes[at].kind != String {
			continue
		}
		if bytes.Contains(d.textOf(&d.nodes[at]), reference) {
			return true
		}
	}
	return false
}
