// SPDX-License-Identifier: Apache-2.0

package severity_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// graph from "component: needs…".
func graph(edges ...[]string) []v1alpha1.ComponentDependencies {
	out := make([]v1alpha1.ComponentDependencies, len(edges))
	for i, e := range edges {
		out[i] = v1alpha1.ComponentDependencies{Component: e[0], DependsOn: e[1:]}
	}
	return out
}

func TestDependents(t *testing.T) {
	shop := graph([]string{"web", "api", "cdn"}, []string{"api", "db", "cache"}, []string{"worker", "db"})
	cycle := graph([]string{"a", "b"}, []string{"b", "c"}, []string{"c", "a"})
	cases := map[string]struct {
		component string
		graph     []v1alpha1.ComponentDependencies
		want      int
	}{
		"nothing needs the front":                  {"web", shop, 0},
		"one needs the api":                        {"api", shop, 1},
		"the database is needed through others":    {"db", shop, 3},
		"a component that is needed, not listed":   {"cdn", shop, 1},
		"a component that nobody mentions":         {"mail", shop, 0},
		"no graph at all":                          {"web", nil, 0},
		"a cycle ends, and counts nobody twice":    {"a", cycle, 2},
		"a component that needs itself":            {"a", graph([]string{"a", "a"}), 0},
		"two ways to one component count once":     {"d", graph([]string{"a", "b", "c"}, []string{"b", "d"}, []string{"c", "d"}), 3},
		"an edge written twice counts once":        {"b", graph([]string{"a", "b", "b"}, []string{"a", "b"}), 1},
		"the empty name is a name like any other":  {"", shop, 0},
		"a cycle beside it is not counted":         {"x", append(graph([]string{"y", "x"}), cycle...), 1},
		"a cycle that needs it is counted in full": {"x", append(graph([]string{"a", "x"}), cycle...), 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := severity.Dependents(tc.component, tc.graph); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestDependents_LikeTheClosure compares with the transitive closure by its
// definition (Warshall), on graphs of up to eight components.
func TestDependents_LikeTheClosure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "components")
		needs := make([][]bool, n)
		g := make([]v1alpha1.ComponentDependencies, n)
		for i := range n {
			needs[i] = rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, fmt.Sprintf("needs of %d", i))
			g[i].Component = fmt.Sprint(i)
			for j, need := range needs[i] {
				if need {
					g[i].DependsOn = append(g[i].DependsOn, fmt.Sprint(j))
				}
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					needs[i][j] = needs[i][j] || needs[i][k] && needs[k][j]
				}
			}
		}
		for j := range n {
			want := 0
			for i := range n {
				if i != j && needs[i][j] {
					want++
				}
			}
			if got := severity.Dependents(fmt.Sprint(j), g); got != want {
				t.Fatalf("component %d: got %d, want %d", j, got, want)
			}
		}
	})
}

// TestDependents_LargestGraph: the largest graph that the schema allows, one
// chain through all of it.
func TestDependents_LargestGraph(t *testing.T) {
	const components, edges = 512, 64
	g := make([]v1alpha1.ComponentDependencies, components)
	for i := range g {
		g[i].Component = fmt.Sprint(i)
		for e := range edges {
			g[i].DependsOn = append(g[i].DependsOn, fmt.Sprint((i+1+e)%components))
		}
	}
	if got := severity.Dependents("0", g); got != components-1 {
		t.Errorf("got %d, want %d", got, components-1)
	}
	slices.Reverse(g)
	if got := severity.Dependents("0", g); got != components-1 {
		t.Errorf("in another order: got %d, want %d", got, components-1)
	}
}
