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
func (p *parser) orderList(n *node, typ typeID) {
	t := &schemaTypes[typ]
	if t.mode == Atomic || !p.collectKeys(n, t) {
		return
	}
	d := p.doc
	n.mode, n.list = t.mode, typ
	if t.references && d.hasReference(n) {
		n.mode = KeyedOrdered
	}
	if n.mode == KeyedOrdered {
		return
	}
	compare := func(a, b elementKey) int { return d.compareKeys(a, b, max(1, len(t.keys))) }
	if slices.IsSortedFunc(d.sortKeys, compare) {
		return
	}
	p.impure++
	slices.SortStableFunc(d.sortKeys, compare)
	n.order = uint32(len(d.order)) + 1
	for i := range d.sortKeys {
		d.order = append(d.order, d.sortKeys[i].node)
	}
}

// collectKeys fills Document.sortKeys; false when an element does not fit.
func (p *parser) collectKeys(n *node, t *schemaType) bool {
	d := p.doc
	d.sortKeys = d.sortKeys[:0]
	for i := n.first; i < n.first+n.count; i++ {
		e := elementKey{node: i}
		child := &d.nodes[i]
		if t.mode == Set {
			if child.kind >= List {
				return false
			}
			e.keys[0] = i + 1
			d.sortKeys = append(d.sortKeys, e)
			continue
		}
		if child.kind != Map {
			return false
		}
		for k, name := range t.keys {
			at, ok := d.member(child, name)
			if !ok {
				continue
			}
			if d.nodes[at].kind >= List {
				return false
			}
			e.keys[k] = at + 1
		}
		d.sortKeys = append(d.sortKeys, e)
	}
	return true
}

func (d *Document) compareKeys(a, b elementKey, count int) int {
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
// too: keeping the order of one list too many hides nothing.
func (d *Document) hasReference(n *node) bool {
	for i := n.first; i < n.first+n.count; i++ {
		at, ok := d.member(&d.nodes[i], "value")
		if !ok || d.nodes[at].kind != String {
			continue
		}
		if bytes.Contains(d.textOf(&d.nodes[at]), []byte("$(")) {
			return true
		}
	}
	return false
}
