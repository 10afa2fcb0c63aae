// SPDX-License-Identifier: Apache-2.0

package canon

import "strconv"

// probe is a child that segments are matched with. It remembers the last key
// looked up, since many paths name the elements of one list by one key.
type probe struct {
	parent, child Value
	position      int

	key   string
	found Value
	known bool
}

// matches tells whether the segment names the child.
func (s *Segment) matches(p *probe) bool {
	switch s.kind {
	case wildcard:
		return true
	case byName:
		if p.parent.Kind() == Map {
			return string(p.child.Key()) == s.name
		}
		return s.isPosition(p.position)
	case byKeys:
		return p.parent.Kind() == List && s.matchesKeys(p)
	default:
		return false
	}
}

func (s *Segment) matchesKeys(p *probe) bool {
	for i := range s.keys {
		v, ok := p.get(s.keys[i].Key)
		if !ok || v.Kind() >= List || string(scalarBytes(v)) != s.keys[i].Value {
			return false
		}
	}
	return true
}

// get is what identifies the child by a key; false when it is no element of
// that kind.
func (p *probe) get(key string) (Value, bool) {
	if key == "" {
		return p.child, true
	}
	if p.child.Kind() != Map {
		return Value{}, false
	}
	if !p.known || p.key != key {
		p.key, p.found, p.known = key, p.child.Get(key), true
	}
	return p.found, true
}

// isPosition tells whether the name is this position, in decimal.
func (s *Segment) isPosition(position int) bool {
	if s.name == "" || s.name[0] < '0' || s.name[0] > '9' {
		return false // spares the names that most paths consist of
	}
	return strconv.Itoa(position) == s.name
}
