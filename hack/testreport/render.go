// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

const (
	longest  = 20  // bounds each list
	shortest = 0.1 // seconds of a wait that is worth a line
)

// render writes where the time of a run went.
func render(r *result, stage string, waited []waits.Wait, before []row) string {
	var b strings.Builder
	renderPackages(&b, stage, r.packages)
	renderTests(&b, r.tests)
	renderSkipped(&b, r.skipped)
	renderWaits(&b, waited)
	hot := measureHotPaths(waited)
	renderHot(&b, hot)
	renderCapabilities(&b, stage, r.packages)
	renderSlower(&b, slowerThanBefore(before, stage, r.packages, hot))
	b.WriteString(renderFailures(stage, r.failures)) // where a reader of a long log looks first
	return b.String()
}

// top returns the longest of all.
func top[T any](all []T, seconds func(T) float64) []T {
	sorted := slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(seconds(b), seconds(a)) })
	return sorted[:min(longest, len(sorted))]
}

func renderPackages(b *strings.Builder, stage string, packages []packageTime) {
	total := sums(packages)
	whole, cached := 0.0, 0
	for _, p := range packages {
		if p.Cached {
			cached++
		}
	}
	for _, seconds := range total {
		whole += seconds
	}
	fmt.Fprintf(b, "\n== %s: %d packages, %d of them cached; %.1f s of tests. The longest packages:\n", stage, len(packages), cached, whole)
	names := slices.Sorted(maps.Keys(total))
	for _, name := range top(names, func(name string) float64 { return total[name] }) {
		fmt.Fprintf(b, "%8.1f s  %s\n", total[name], name)
	}
}

func renderTests(b *strings.Builder, tests []testTime) {
	if len(tests) == 0 {
		return
	}
	b.WriteString("\n== The longest tests:\n")
	for _, t := range top(tests, func(t testTime) float64 { return t.Seconds }) {
		fmt.Fprintf(b, "%8.1f s  %s %s\n", t.Seconds, t.Package, t.Name)
	}
}

// renderSkipped names all tests that did not run, below their reason.
func renderSkipped(b *strings.Builder, skipped []skippedTest) {
	type key struct{ reason, of string }
	names := map[key][]string{}
	for _, s := range skipped {
		k := key{s.Reason, s.Package}
		names[k] = append(names[k], s.Name)
	}
	reason := ""
	for _, k := range slices.SortedFunc(maps.Keys(names), func(x, y key) int {
		return cmp.Or(cmp.Compare(x.reason, y.reason), cmp.Compare(x.of, y.of))
	}) {
		if k.reason != reason {
			reason = k.reason
			fmt.Fprintf(b, "\n== Skipped: %s\n", reason)
		}
		fmt.Fprintf(b, "  %s %s\n", k.of, strings.Join(slices.Sorted(slices.Values(names[k])), ", "))
	}
}

func renderWaits(b *strings.Builder, waited []waits.Wait) {
	waited = slices.DeleteFunc(slices.Clone(waited), func(w waits.Wait) bool { return w.Seconds < shortest })
	if len(waited) == 0 {
		return
	}
	b.WriteString("\n== The longest waits:\n")
	for _, w := range top(waited, func(w waits.Wait) float64 { return w.Seconds }) {
		how := ""
		if !w.Passed {
			how = " (in vain)"
		}
		fmt.Fprintf(b, "%8.1f s of %.0f s  %s %s: %s%s\n", w.Seconds, w.Limit, w.Package, w.Test, strings.ReplaceAll(w.What, "\n", " "), how)
	}
}

func renderHot(b *strings.Builder, measured []hotTime) {
	if len(measured) == 0 {
		return
	}
	b.WriteString("\n== The hot paths:\n")
	for _, h := range measured {
		fmt.Fprintf(b, "  %-12s  %-12s  %5d times, p50 %.3f s, max %.3f s\n", h.Path, h.Package, h.Times, h.Median, h.Max)
	}
}

func renderCapabilities(b *strings.Builder, stage string, packages []packageTime) {
	all := shares(stage, packages)
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n== The capabilities (a new one has %.0f s in this stage):\n", newBudget[stage])
	for _, s := range all {
		hint := ""
		if s.Over {
			hint = "  hint: over the budget of a new capability"
		}
		fmt.Fprintf(b, "%8.1f s  %s%s\n", s.Seconds, s.Capability, hint)
	}
}

func renderSlower(b *strings.Builder, found []difference) {
	if len(found) == 0 {
		return
	}
	b.WriteString("\n== Hint: slower than before by more than half and 10 s (the p50 of a hot path: 1 s):\n")
	for _, d := range found {
		fmt.Fprintf(b, "%8.1f s, before %.1f s  %s\n", d.Now, d.Before, d.Name)
	}
}
