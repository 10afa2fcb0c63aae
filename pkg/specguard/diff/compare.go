// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Compare lists the changes from before to after, sorted by path, leaving out
// the excluded paths. It is empty if and only if the two hashes with the same
// exclusions are equal. Both documents must have been read as the same kind.
//
// Maps are compared member by member. Elements of keyed lists are paired by
// their keys and those of sets by their value; where the order of a keyed list
// counts, a change of it is one Changed at the list, beside the changes inside
// elements. Atomic lists, and lists with repeated keys, are compared whole.
// Where a path would exceed canon's bounds, the nearest ancestor that fits is
// reported whole.
func Compare(before, after *canon.Document, exclude ...canon.Path) []Change {
	c := comparer{}
	c.compareMaps(before.RootWithout(exclude...), after.RootWithout(exclude...))
	slices.SortFunc(c.changes, func(a, b Change) int { return a.Path.Compare(b.Path) })
	return c.changes
}

// comparer collects changes. Its methods return false when a path below did
// not fit the bounds, with nothing added: the caller then reports itself whole.
type comparer struct {
	path    []canon.Segment
	changes []Change
}

// at runs compare below one more segment.
func (c *comparer) at(s canon.Segment, before, after canon.Value) bool {
	c.path = append(c.path, s)
	fits := c.compare(before, after)
	c.path = c.path[:len(c.path)-1]
	return fits
}

// compare reports the differences of two values, of which one may be absent.
func (c *comparer) compare(before, after canon.Value) bool {
	start := len(c.changes)
	switch {
	case before.Kind() == canon.Map && after.Kind() == canon.Map:
		if c.compareMaps(before, after) {
			return true
		}
	case before.Equal(after):
		return true
	case before.Kind() == canon.List && after.Kind() == canon.List:
		if c.compareLists(before, after) {
			return true
		}
	}
	c.changes = c.changes[:start]
	return c.whole(before, after, nil)
}

// whole reports the value at the current path as one change.
func (c *comparer) whole(before, after canon.Value, order []string) bool {
	path, fits := canon.NewPath(c.path...)
	if !fits {
		return false
	}
	change := Change{Path: path, Op: Changed, Order: order}
	switch {
	case !before.Exists():
		change.Op = Added
	case !after.Exists():
		change.Op = Removed
	}
	change.Before = before.AppendCanonical(nil) // nil when absent
	change.After = after.AppendCanonical(nil)
	c.changes = append(c.changes, change)
	return true
}

func (c *comparer) compareMaps(before, after canon.Value) bool {
	i, j := 0, 0
	for i < before.Len() || j < after.Len() {
		x, y := before.Index(i), after.Index(j)
		order := compareMembers(x, y)
		key := x.Key()
		if order > 0 {
			key = y.Key()
		}
		if order <= 0 {
			i++
		} else {
			x = canon.Value{}
		}
		if order >= 0 {
			j++
		} else {
			y = canon.Value{}
		}
		if !c.member(key, covered(x), covered(y)) {
			return false
		}
	}
	return true
}

// member compares without making a path for equal scalars, which most are.
func (c *comparer) member(key []byte, before, after canon.Value) bool {
	if before.Kind() < canon.List && before.Equal(after) {
		return true
	}
	return c.at(canon.Field(string(key)), before, after)
}

// compareMembers orders two members by key; an absent one comes last.
func compareMembers(x, y canon.Value) int {
	switch {
	case !x.Exists():
		return 1
	case !y.Exists():
		return -1
	default:
		return bytes.Compare(x.Key(), y.Key())
	}
}

// covered is v, or absent when the hash does not see it.
func covered(v canon.Value) canon.Value {
	if !v.Covered() {
		return canon.Value{}
	}
	return v
}

// elements are the covered ones of a list, with what identifies them.
type elements struct {
	segments []canon.Segment
	texts    []string
	values   []canon.Value
	byText   map[string]int
}

// identify gives false when elements cannot be told apart by their segments.
func identify(list canon.Value) (elements, bool) {
	e := elements{byText: make(map[string]int, list.Len())}
	if list.Mode() == canon.Atomic {
		return e, false
	}
	for i := range list.Len() {
		if !list.Index(i).Covered() {
			continue
		}
		segment := list.ElementSegment(i)
		text := segment.String()
		if _, repeated := e.byText[text]; repeated {
			return e, false
		}
		e.byText[text] = len(e.texts)
		e.segments = append(e.segments, segment)
		e.texts = append(e.texts, text)
		e.values = append(e.values, list.Index(i))
	}
	return e, true
}

// compareLists is called with lists that differ; false also tells that they
// are to be reported whole.
func (c *comparer) compareLists(before, after canon.Value) bool {
	b, told := identify(before)
	if !told {
		return false
	}
	a, told := identify(after)
	if !told {
		return false
	}
	for i, text := range b.texts {
		other := canon.Value{}
		if j, found := a.byText[text]; found {
			other = a.values[j]
		}
		if !c.at(b.segments[i], b.values[i], other) {
			return false
		}
	}
	for j, text := range a.texts {
		if _, found := b.byText[text]; !found && !c.addElement(a, j) {
			return false
		}
	}
	ordered := before.Mode() == canon.KeyedOrdered || after.Mode() == canon.KeyedOrdered
	if ordered && !sameOrder(b, a) {
		return c.whole(before, after, a.texts)
	}
	return true
}

func (c *comparer) addElement(a elements, j int) bool {
	c.path = append(c.path, a.segments[j])
	fits := c.whole(canon.Value{}, a.values[j], a.texts)
	c.path = c.path[:len(c.path)-1]
	return fits
}

// sameOrder tells whether the elements that both lists have stand alike.
func sameOrder(b, a elements) bool {
	last := -1
	for _, text := range b.texts {
		j, found := a.byText[text]
		if !found {
			continue
		}
		if j < last {
			return false
		}
		last = j
	}
	return true
}
