// SPDX-License-Identifier: Apache-2.0

package ads

import (
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
			if was, is := before.Get(t, name), after.Get(t, name); was == nil || was != is && was.Version != is.Version {
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
