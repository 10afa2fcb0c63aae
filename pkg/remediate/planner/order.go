// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	scoring "github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// order sorts drift: the most severe first, then the oldest, then what others
// need before those that need it, then by name, so that there is one order.
func order(drifts []*Drift, graph []v1alpha1.ComponentDependencies) {
	depth := depths(graph)
	slices.SortFunc(drifts, func(a, b *Drift) int {
		return cmp.Or(
			scoring.Compare(b.Severity, a.Severity),
			a.FirstSeen.Compare(b.FirstSeen),
			cmp.Compare(depth[a.Component], depth[b.Component]),
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Baseline, b.Baseline),
		)
	})
}

// depths says of each component how long the longest way down to one that needs
// nothing is; a way ends where it would come back to where it was.
func depths(graph []v1alpha1.ComponentDependencies) map[string]int {
	needs := make(map[string][]string, len(graph))
	for _, c := range graph {
		needs[c.Component] = append(needs[c.Component], c.DependsOn...)
	}
	d := depthSearch{needs: needs, known: make(map[string]int, len(graph)), under: map[string]bool{}}
	names := make([]string, 0, len(needs))
	for name := range needs {
		names = append(names, name)
	}
	slices.Sort(names) // where a cycle is entered decides its depths
	for _, name := range names {
		d.of(name)
	}
	return d.known
}

type depthSearch struct {
	needs map[string][]string
	known map[string]int
	under map[string]bool
}

func (d *depthSearch) of(name string) int {
	if depth, ok := d.known[name]; ok {
		return depth
	}
	if d.under[name] {
		return 0
	}
	d.under[name] = true
	depth := 0
	for _, need := range d.needs[name] {
		depth = max(depth, d.of(need)+1)
	}
	delete(d.under, name)
	d.known[name] = depth
	return depth
}
