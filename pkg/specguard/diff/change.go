// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Op says what happened at a path. The set is closed.
type Op string

// The operations.
const (
	// Added: the path exists only after.
	Added Op = "Added"
	// Removed: the path existed only before.
	Removed Op = "Removed"
	// Changed: the path has another value; or, when Change.Order is set, its
	// elements another order.
	Changed Op = "Changed"
)

// Change is one difference.
type Change struct {
	// Path is concrete: it has no wildcards, and names list elements by their
	// keys where they have some.
	Path canon.Path `json:"path"`
	Op   Op         `json:"op"`
	// Before and After are canonical JSON; nil on the side where the path does
	// not exist.
	Before []byte `json:"before,omitempty"`
	After  []byte `json:"after,omitempty"`
	// Order is the order after the change of the list that holds an added
	// element of a keyed list, or of a list that was Changed by reordering
	// alone: the text of each element's segment. Changes inside its elements
	// are changes of their own.
	Order []string `json:"order,omitempty"`
}

// Reordered tells whether the change is of a list's order alone.
func (c Change) Reordered() bool { return c.Op == Changed && c.Order != nil }

// NullsOnly tells whether the change is of nothing but null members of maps, which the
// hash pl1 does not cover.
func (c Change) NullsOnly() bool {
	before, known := withoutNulls(c.Before)
	after, same := withoutNulls(c.After)
	return known && same && !c.Reordered() && bytes.Equal(before, after)
}

// withoutNulls returns a value within a map, without null members; absent counts as null.
func withoutNulls(value []byte) ([]byte, bool) {
	if value == nil {
		value = []byte("null")
	}
	document, err := canon.Parse(slices.Concat([]byte(`{"v":`), value, []byte(`}`)), canon.GVK{})
	if err != nil {
		return nil, false
	}
	defer document.Release()
	return document.AppendCanonical(nil), true
}
