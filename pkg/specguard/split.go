// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// splitChange takes apart a map that appeared or went as a whole, as far as an
// expectation names places inside it: the first annotation of a template is
// reported as its annotations, and the writer of that annotation is expected
// all the same.
func splitChange(gvk canon.GVK, rules Rules, c diff.Change) []diff.Change {
	return splitWhere(gvk, rules.expectedBelow, c)
}

// splitWhere takes apart maps that appeared or went as a whole while something
// below them is to be judged by itself. Elements of lists stay whole, for a new
// one is more than its fields.
func splitWhere(gvk canon.GVK, below func(canon.Path) bool, c diff.Change) []diff.Change {
	raw := c.After
	switch c.Op {
	case diff.Added:
	case diff.Removed:
		raw = c.Before
	case diff.Changed:
		return []diff.Change{c}
	}
	last := c.Path.Last()
	if len(raw) == 0 || raw[0] != '{' || last.Name() == "" || !below(c.Path) {
		return []diff.Change{c}
	}
	document, err := canon.Parse(raw, gvk.Fragment())
	if err != nil {
		return []diff.Change{c}
	}
	defer document.Release()
	var parts []diff.Change
	for child := range document.Root().All() {
		path, ok := c.Path.Child(canon.Field(string(child.Key())))
		if !ok {
			return []diff.Change{c}
		}
		part := diff.Change{Path: path, Op: c.Op}
		if c.Op == diff.Added {
			part.After = child.AppendCanonical(nil)
		} else {
			part.Before = child.AppendCanonical(nil)
		}
		parts = append(parts, splitWhere(gvk, below, part)...)
	}
	if len(parts) == 0 { // an empty map
		return []diff.Change{c}
	}
	return parts
}

// splitAll splits every change; the result is sorted by path.
func splitAll(gvk canon.GVK, rules Rules, changes []diff.Change) []diff.Change {
	parts := make([]diff.Change, 0, len(changes))
	for _, c := range changes {
		parts = append(parts, splitChange(gvk, rules, c)...)
	}
	slices.SortStableFunc(parts, func(a, b diff.Change) int { return a.Path.Compare(b.Path) })
	return parts
}

// touches tells whether two changes are about a common place. The order of a
// list is a place of its own: elements come and go without it.
func touches(a, b diff.Change) bool {
	if a.Reordered() || b.Reordered() {
		return a.Reordered() && b.Reordered() && a.Path.Equal(b.Path)
	}
	return a.Path.Overlaps(b.Path)
}
