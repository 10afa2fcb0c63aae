// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// tree is a value that can be edited.
type tree struct {
	kind canon.Kind
	// text is a scalar: a decoded string, a canonical number, or a literal.
	text string
	// members are in key order, elements as written.
	members  []member
	elements []*tree
}

type member struct {
	key   string
	value *tree
	// allocated members are the server's: no change is about them.
	allocated bool
}

func newTree(v canon.Value) *tree {
	t := &tree{kind: v.Kind(), text: v.Text()}
	switch v.Kind() {
	case canon.Map:
		t.members = make([]member, 0, v.Len())
		for child := range v.All() {
			t.members = append(t.members, member{
				key: string(child.Key()), value: newTree(child), allocated: child.Allocated(),
			})
		}
	case canon.List:
		t.elements = make([]*tree, 0, v.Len())
		for child := range v.All() {
			t.elements = append(t.elements, newTree(child))
		}
	case canon.Absent, canon.Null, canon.Bool, canon.Number, canon.String:
	}
	return t
}

func (t *tree) appendJSON(dst []byte) []byte {
	switch t.kind {
	case canon.Map:
		dst = append(dst, '{')
		for i, m := range t.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(canon.AppendString(dst, m.key), ':')
			dst = m.value.appendJSON(dst)
		}
		return append(dst, '}')
	case canon.List:
		dst = append(dst, '[')
		for i, e := range t.elements {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendJSON(dst)
		}
		return append(dst, ']')
	case canon.String:
		return canon.AppendString(dst, t.text)
	case canon.Absent, canon.Null, canon.Bool, canon.Number:
		return append(dst, t.text...)
	default:
		return dst
	}
}

func (t *tree) search(key string) (int, bool) {
	return slices.BinarySearchFunc(t.members, key, func(m member, key string) int {
		return strings.Compare(m.key, key)
	})
}

// get is a member that the hash sees, or nil.
func (t *tree) get(key string) *tree {
	i, found := t.search(key)
	if !found || t.members[i].allocated || t.members[i].value.kind == canon.Null {
		return nil
	}
	return t.members[i].value
}

// set puts a member, keeping what the server allocated in the old one.
func (t *tree) set(key string, value *tree) {
	i, found := t.search(key)
	if !found {
		t.members = slices.Insert(t.members, i, member{key: key, value: value})
		return
	}
	value.keepAllocated(t.members[i].value)
	t.members[i] = member{key: key, value: value}
}

// keepAllocated takes over the allocated members of an older value; but not
// into an empty map, which would then count as absent.
func (t *tree) keepAllocated(old *tree) {
	if t.kind != canon.Map || old.kind != canon.Map || len(t.members) == 0 {
		return
	}
	for _, m := range old.members {
		i, found := t.search(m.key)
		switch {
		case m.allocated && !found:
			t.members = slices.Insert(t.members, i, m)
		case found:
			t.members[i].value.keepAllocated(m.value)
		}
	}
}

// remove takes a member out, all but what the server allocated in it.
func (t *tree) remove(key string) {
	i, found := t.search(key)
	if !found || t.members[i].allocated {
		return
	}
	if !t.members[i].value.onlyAllocated() {
		t.members = slices.Delete(t.members, i, i+1)
		return
	}
	t.members[i].allocated = true
}

// onlyAllocated drops everything else from a map; false when nothing is left.
func (t *tree) onlyAllocated() bool {
	if t.kind != canon.Map {
		return false
	}
	t.members = slices.DeleteFunc(t.members, func(m member) bool {
		return !m.allocated && !m.value.onlyAllocated()
	})
	return len(t.members) > 0
}

// matches tells whether an element has these keys; see canon.Path.
func (t *tree) matches(keys []canon.KeyValue) bool {
	for _, kv := range keys {
		v := t
		if kv.Key != "" {
			if t.kind != canon.Map {
				return false
			}
			v = t.getAny(kv.Key)
		}
		if v.container() || v.keyText() != kv.Value {
			return false
		}
	}
	return true
}

// getAny is a member, allocated and null ones too, or nil.
func (t *tree) getAny(key string) *tree {
	if i, found := t.search(key); found {
		return t.members[i].value
	}
	return nil
}

func (t *tree) container() bool { return t != nil && t.kind >= canon.List }

// keyText is the text of a scalar as a segment has it: empty when absent.
func (t *tree) keyText() string {
	if t == nil || t.kind == canon.Null {
		return ""
	}
	return t.text
}

// find gives the position of the one element with these keys; -1 when there is
// none. unique is false when there are several.
func (t *tree) find(keys []canon.KeyValue) (position int, unique bool) {
	position = -1
	for i, e := range t.elements {
		if !e.matches(keys) {
			continue
		}
		if position >= 0 {
			return position, false
		}
		position = i
	}
	return position, true
}

// segmentTexts are the elements' segments by the names of these keys, as
// Change.Order has them.
func (t *tree) segmentTexts(keys []canon.KeyValue) []string {
	texts := make([]string, len(t.elements))
	for i, e := range t.elements {
		own := slices.Clone(keys)
		for k := range own {
			if own[k].Key == "" {
				own[k].Value = e.keyText()
			} else {
				own[k].Value = e.getAny(own[k].Key).keyText()
			}
		}
		texts[i] = canon.Element(own...).String()
	}
	return texts
}
