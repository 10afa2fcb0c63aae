// SPDX-License-Identifier: Apache-2.0

package canon

// mask marks what excluded paths take out of a document. It is beside the tree,
// not in it, so that several views of one document can exist. A nil mask takes
// out nothing.
type mask struct {
	states []maskState // one per node
}

type maskState uint8

const (
	untouched maskState = iota
	touched             // something below is out
	out
)

func (m *mask) clean(i uint32) bool   { return m == nil || m.states[i] == untouched }
func (m *mask) removed(i uint32) bool { return m != nil && m.states[i] == out }

// cursor is an excluded path of which the first segments have matched.
type cursor struct {
	path    *Path
	matched int
}

func newMask(d *Document, exclude []Path) *mask {
	if len(exclude) == 0 {
		return nil
	}
	m := &mask{states: make([]maskState, len(d.nodes))}
	active := make([]cursor, 0, 2*len(exclude))
	for i := range exclude {
		if exclude[i].IsRoot() { // everything: what is left is {}
			m.clear(d)
			return m
		}
		active = append(active, cursor{path: &exclude[i]})
	}
	m.apply(Value{doc: d, index: d.root}, active)
	m.states[d.root] = min(m.states[d.root], touched) // {} at the least
	return m
}

func (m *mask) clear(d *Document) {
	root := &d.nodes[d.root]
	for i := root.first; i < root.first+root.count; i++ {
		m.states[i] = out
	}
	m.states[d.root] = touched
}

// apply marks what the active paths match below a container. The container
// itself goes when nothing of it is left, for a writer that adds the first
// entry of a map must be maskable too.
func (m *mask) apply(parent Value, active []cursor) {
	anyOut, anyTouched, remaining := false, false, 0
	for i := range parent.Len() {
		child := parent.Index(i)
		if !child.Covered() {
			continue
		}
		m.applyChild(parent, child, i, active)
		switch m.states[child.index] {
		case out:
			anyOut = true
		case touched:
			anyTouched = true
			remaining++
		case untouched:
			remaining++
		}
	}
	switch {
	case anyOut && remaining == 0:
		m.states[parent.index] = out
	case anyOut || anyTouched:
		m.states[parent.index] = touched
	}
}

func (m *mask) applyChild(parent, child Value, position int, active []cursor) {
	base := len(active)
	p := probe{parent: parent, child: child, position: position}
	for _, c := range active[:base] {
		segments := c.path.segments
		if !segments[c.matched].matches(&p) {
			continue
		}
		if c.matched+1 == len(segments) {
			m.states[child.index] = out
			return
		}
		active = append(active, cursor{path: c.path, matched: c.matched + 1})
	}
	if len(active) > base && child.Kind() >= List {
		m.apply(child, active[base:])
	}
}
