// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// hotTime is the latency of a hot path, as the tests of a package saw it.
type hotTime struct {
	Path        waits.Hot
	Package     string // the last element of its path
	Times       int
	Median, Max float64 // seconds
}

// name identifies the latency in the table of times.
func (h *hotTime) name() string { return string(h.Path) + hotSeparator + h.Package }

// hotSeparator stands in no path of a package.
const hotSeparator = " in "

func isHot(name string) bool { return strings.Contains(name, hotSeparator) }

// measureHotPaths sums up the waits on hot paths, in the order of the paths and packages.
func measureHotPaths(waited []waits.Wait) []hotTime {
	type key struct {
		path waits.Hot
		of   string
	}
	seconds := map[key][]float64{}
	for _, w := range waited {
		if w.Hot != "" {
			k := key{w.Hot, w.Package}
			seconds[k] = append(seconds[k], w.Seconds)
		}
	}
	byName := func(x, y key) int {
		return cmp.Or(cmp.Compare(slices.Index(waits.Paths(), x.path), slices.Index(waits.Paths(), y.path)), cmp.Compare(x.of, y.of))
	}
	var measured []hotTime
	for _, k := range slices.SortedFunc(maps.Keys(seconds), byName) {
		all := slices.Sorted(slices.Values(seconds[k]))
		measured = append(measured, hotTime{k.path, k.of, len(all), all[(len(all)-1)/2], all[len(all)-1]})
	}
	return measured
}
