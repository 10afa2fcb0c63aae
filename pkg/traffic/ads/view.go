// SPDX-License-Identifier: Apache-2.0

package ads

import (
	"cmp"
	"maps"
	"slices"
)

// View is all that a scope sees at one moment. Nobody changes it.
type View struct {
	resources [types]map[string]*Resource
	names     [types][]string // sorted
}

// NewView makes one. Of two resources with one name the last counts.
func NewView(resources ...*Resource) *View {
	v := &View{}
	for t := range v.resources {
		v.resources[t] = map[string]*Resource{}
	}
	for _, r := range resources {
		v.resources[r.Type][r.Name] = r
	}
	for t := range v.resources {
		v.names[t] = slices.Sorted(maps.Keys(v.resources[t]))
	}
	return v
}

// With makes the view with other resources and without those of some names, and lists the
// differences. A resource that goes and is set stays. It costs a copy of each type that changes,
// and an order of its names only if names come or go.
func (v *View) With(gone []Key, set []*Resource) (*View, []Key) {
	next := &View{resources: v.resources, names: v.names}
	var copied, renamed [types]bool
	touch := func(t Type) map[string]*Resource {
		if !copied[t] {
			next.resources[t], copied[t] = maps.Clone(v.resources[t]), true
		}
		return next.resources[t]
	}
	for _, k := range gone {
		if v.Get(k.Type, k.Name) != nil {
			delete(touch(k.Type), k.Name)
		}
	}
	for _, r := range set {
		if next.resources[r.Type][r.Name] != r {
			touch(r.Type)[r.Name] = r
		}
	}
	keys := slices.Clone(gone)
	for _, r := range set {
		keys = append(keys, Key{r.Type, r.Name})
	}
	var changed []Key
	for _, k := range distinct(keys) {
		was, is := v.Get(k.Type, k.Name), next.Get(k.Type, k.Name)
		if differ(was, is) {
			changed = append(changed, k)
		}
		renamed[k.Type] = renamed[k.Type] || (was == nil) != (is == nil)
	}
	for t := range renamed {
		if renamed[t] {
			next.names[t] = slices.Sorted(maps.Keys(next.resources[t]))
		}
	}
	return next, changed
}

// distinct sorts keys and has each once.
func distinct(keys []Key) []Key {
	sorted := slices.SortedFunc(slices.Values(keys), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(sorted)
}

// differ says that a resource is another one for proxies; either may be nil.
func differ(was, is *Resource) bool {
	if was == nil || is == nil {
		return was != is
	}
	return was != is && was.Version != is.Version
}

// Get finds a resource; nil when there is none.
func (v *View) Get(t Type, name string) *Resource {
	if v == nil {
		return nil
	}
	return v.resources[t][name]
}

// shared is a name as the view has it, so that not each proxy keeps one of its own.
func (v *View) shared(t Type, name string) string {
	if r := v.Get(t, name); r != nil {
		return r.Name
	}
	return name
}

// Names of all resources of a type, sorted. The caller changes nothing of it.
func (v *View) Names(t Type) []string {
	if v == nil {
		return nil
	}
	return v.names[t]
}

// Diff lists what differs between two views: made, changed or gone. What was made
// anew in the same version has not changed.
func Diff(before, after *View) []Key {
	var keys []Key
	for t := range Type(types) {
		for _, name := range after.Names(t) {
			if differ(before.Get(t, name), after.Get(t, name)) {
				keys = append(keys, Key{t, name})
			}
		}
		for _, name := range before.Names(t) {
			if after.Get(t, name) == nil {
				keys = append(keys, Key{t, name})
			}
		}
	}
	return keys
}
