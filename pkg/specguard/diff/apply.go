// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Apply sets exactly the changed paths in body to what the changes say they
// became, and gives the new body as compact JSON.
//
// This is how a trusted write moves the authorized state: body is the
// authorized one, changes are Compare(old, new) of that write, and what else
// differs between body and new stays unauthorized. A change inside something
// that body does not have, or has twice under the same keys, is not made but
// given back as skipped: it lies in what somebody else added.
//
//   - A member of a map is set or taken out.
//   - An element of a keyed list or set is replaced, taken out, or put in: next
//     to the elements that it stands next to in Change.Order.
//   - A reordered list is put in that order; elements that it does not name
//     stay behind the one that they followed.
//   - An atomic list is replaced whole.
//
// What the hash does not cover (metadata, status, fields that the server
// allocates) stays as it is in body. Apply(a, gvk, Compare(a, b)) hashes as b.
// The error is about body or a change that is no JSON.
func Apply(body []byte, gvk canon.GVK, changes []Change) (out []byte, skipped []Change, err error) {
	document, err := canon.Parse(body, gvk)
	if err != nil {
		return nil, nil, fmt.Errorf("applying changes: reading the body: %w", err)
	}
	defer document.Release()
	root := newTree(document.Root())
	for _, change := range changes {
		applied, err := root.apply(change)
		if err != nil {
			return nil, nil, fmt.Errorf("applying the change of %s: %w", change.Path, err)
		}
		if !applied {
			skipped = append(skipped, change)
		}
	}
	return root.appendJSON(nil), skipped, nil
}

// apply makes one change; false when it has no place.
func (t *tree) apply(c Change) (bool, error) {
	parent := t.follow(c.Path.Parent())
	if parent == nil || c.Path.IsRoot() {
		return false, nil
	}
	if c.Reordered() {
		return parent.step(c.Path.Last()).reorder(c.Order)
	}
	var value *tree
	if c.Op != Removed {
		var err error
		if value, err = parseTree(c.After); err != nil {
			return false, err
		}
	}
	last := c.Path.Last()
	switch {
	case parent.kind == canon.Map && len(last.Keys()) == 0 && !last.IsAny():
		if value == nil {
			parent.remove(last.Name())
		} else {
			parent.set(last.Name(), value)
		}
		return true, nil
	case parent.kind == canon.List && len(last.Keys()) > 0:
		return parent.applyElement(last.Keys(), value, c.Order), nil
	default:
		return false, nil
	}
}

// parseTree reads one JSON value of any kind.
func parseTree(value []byte) (*tree, error) {
	document, err := canon.Parse(slices.Concat([]byte(`{"v":`), value, []byte(`}`)), canon.GVK{})
	if err != nil {
		return nil, err
	}
	defer document.Release()
	return newTree(document.Root().Get("v")), nil
}

func (t *tree) follow(p canon.Path) *tree {
	for _, s := range p.Segments() {
		if t = t.step(s); t == nil {
			return nil
		}
	}
	return t
}

// step is the one child that the segment names, or nil.
func (t *tree) step(s canon.Segment) *tree {
	switch keys := s.Keys(); {
	case s.IsAny():
		return nil
	case t.kind == canon.Map && len(keys) == 0:
		return t.get(s.Name())
	case t.kind == canon.List && len(keys) > 0:
		if i, unique := t.find(keys); unique && i >= 0 {
			return t.elements[i]
		}
	}
	return nil
}

// applyElement replaces, takes out (nil value) or puts in an element.
func (t *tree) applyElement(keys []canon.KeyValue, value *tree, order []string) bool {
	i, unique := t.find(keys)
	switch {
	case !unique:
		return false
	case value == nil && i >= 0:
		t.elements = slices.Delete(t.elements, i, i+1)
	case value == nil: // already gone
	case i >= 0:
		value.keepAllocated(t.elements[i])
		t.elements[i] = value
	default:
		t.elements = slices.Insert(t.elements, t.place(keys, order), value)
	}
	return true
}

// place is where a new element goes: behind the nearest of its predecessors in
// the order that is there, else before the nearest successor, else at the end.
func (t *tree) place(keys []canon.KeyValue, order []string) int {
	texts := t.segmentTexts(keys)
	own := slices.Index(order, canon.Element(keys...).String())
	for k := own - 1; k >= 0; k-- {
		if i := slices.Index(texts, order[k]); i >= 0 {
			return i + 1
		}
	}
	for k := own + 1; k < len(order); k++ {
		if i := slices.Index(texts, order[k]); i >= 0 {
			return i
		}
	}
	return len(t.elements)
}

// reorder puts the elements that the order names in that order. Each element
// that it does not name goes along with the one before it.
func (t *tree) reorder(order []string) (bool, error) {
	if t == nil || t.kind != canon.List || len(order) == 0 {
		return false, nil
	}
	first, err := canon.ParsePath("/" + order[0])
	if err != nil {
		return false, err
	}
	ranks := make(map[string]int, len(order))
	for i, text := range order {
		ranks[text] = i
	}
	type placed struct {
		rank    int
		element *tree
	}
	current := -1 // elements before the first named one stay in front
	all := make([]placed, len(t.elements))
	for i, text := range t.segmentTexts(first.Last().Keys()) {
		if r, named := ranks[text]; named {
			current = r
		}
		all[i] = placed{rank: current, element: t.elements[i]}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.rank, b.rank) })
	for i := range all {
		t.elements[i] = all[i].element
	}
	return true, nil
}
