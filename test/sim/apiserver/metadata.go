// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"reflect"
)

// metaOf is an object's metadata; nil when it has none. Nobody changes it.
func metaOf(o Object) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

func metaString(o Object, field string) string {
	v, _ := metaOf(o)[field].(string)
	return v
}

func generationOf(o Object) int64 {
	v, _ := metaOf(o)["generation"].(int64)
	return v
}

// withMeta is an object with another value in its metadata; nil takes it out.
func withMeta(o Object, field string, value any) Object {
	next, meta := maps.Clone(o), maps.Clone(metaOf(o))
	if meta == nil {
		meta = map[string]any{}
	}
	if value == nil {
		delete(meta, field)
	} else {
		meta[field] = value
	}
	next["metadata"] = meta
	return next
}

// keepMeta takes some of the metadata from another object.
func keepMeta(o, from Object, fields ...string) Object {
	for _, field := range fields {
		o = withMeta(o, field, metaOf(from)[field])
	}
	return o
}

// keep takes some of the top-level fields from another object.
func keep(o, from Object, fields ...string) Object {
	next := maps.Clone(o)
	for _, field := range fields {
		if value, ok := from[field]; ok {
			next[field] = value
		} else {
			delete(next, field)
		}
	}
	return next
}

// same compares two values of JSON.
func same(a, b any) bool { return reflect.DeepEqual(a, b) }

// moved says whether a change is one that a generation counts.
func (r *Resource) moved(before, after Object) bool {
	switch r.Generation {
	case NotCounted:
		return false
	case OnSpec:
		return !same(before["spec"], after["spec"])
	case OnSpecOrAnnotations:
		return !same(before["spec"], after["spec"]) || !sameMap(metaOf(before)["annotations"], metaOf(after)["annotations"])
	case OnAllButStatus:
		none := Object{}
		return !same(keep(before, none, "metadata", "status"), keep(after, none, "metadata", "status"))
	}
	return true
}

// sameMap takes an empty map for an absent one.
func sameMap(a, b any) bool {
	first, _ := a.(map[string]any)
	second, _ := b.(map[string]any)
	return len(first) == 0 && len(second) == 0 || same(first, second)
}
