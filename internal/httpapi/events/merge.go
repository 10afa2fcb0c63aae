// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"slices"
)

// Merge brings the events of objects into one order by their times. Those of each object stay in their order,
// also where a clock went back between them.
func Merge(objects [][]Entry) []Entry {
	type timed struct {
		second int64
		entry  Entry
	}
	var all []timed
	for _, entries := range objects {
		latest := int64(0)
		for i := range entries {
			latest = max(latest, entries[i].ID.Second)
			all = append(all, timed{latest, entries[i]})
		}
	}
	slices.SortStableFunc(all, func(x, y timed) int { return cmp.Compare(x.second, y.second) })
	merged := make([]Entry, 0, len(all))
	for i := range all {
		merged = append(merged, all[i].entry)
	}
	return merged
}
