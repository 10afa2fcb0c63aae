// SPDX-License-Identifier: Apache-2.0

package canon

// closeMap moves the members to the arena, in key order, and pushes the map;
// false when a key is there twice.
func (p *parser) closeMap(k memberName, o *opened, sorted, top bool) bool {
	d := p.doc
	p.pos++
	p.depth--
	emptied := !top && p.emptied(o)
	first, count := len(d.nodes), len(d.stack)-o.base
	if sorted {
		d.nodes = append(d.nodes, d.stack[o.base:]...)
	} else {
		p.impure++
		if !d.moveSorted(o.base) {
			return false
		}
	}
	d.stack = d.stack[:o.base]
	p.pushContainer(k, Map, o, emptied, first, count)
	return true
}

// closeList moves the elements to the arena, pushes the list, and decides what
// its order means.
func (p *parser) closeList(k memberName, o *opened, typ typeID) {
	d := p.doc
	p.pos++
	p.depth--
	emptied := p.emptied(o)
	first, count := len(d.nodes), len(d.stack)-o.base
	d.nodes = append(d.nodes, d.stack[o.base:]...)
	d.stack = d.stack[:o.base]
	p.pushContainer(k, List, o, emptied, first, count)
	if schemaTypes[typ].mode != Atomic {
		p.orderList(&d.stack[o.base], o, typ)
	}
}

func (p *parser) pushContainer(k memberName, kind Kind, o *opened, emptied bool, first, count int) {
	var f flags
	if emptied {
		f |= removed
		p.impure++
	}
	if p.impure == o.impure {
		f |= verbatim
	}
	n := p.push(k, kind, uint32(o.start), uint32(p.pos), f)
	n.first, n.count = uint32(first), uint32(count)
}

// emptied tells whether the removal table took children out of the container
// that closes and left none: it is then removed itself. A removal further down
// does not count here, unless it emptied, and so removed, a child.
func (p *parser) emptied(o *opened) bool {
	if p.removals == o.removals {
		return false
	}
	children := p.doc.stack[o.base:]
	for i := range children {
		if children[i].flags&ignored == 0 {
			return false
		}
	}
	return true
}
