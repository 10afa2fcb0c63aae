// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestTheDepthOfAComponentIsItsLongestWayDown(t *testing.T) {
	needs := func(component string, others ...string) v1alpha1.ComponentDependencies {
		return v1alpha1.ComponentDependencies{Component: component, DependsOn: others}
	}
	tests := map[string]struct {
		graph []v1alpha1.ComponentDependencies
		want  map[string]int
	}{
		"a component without needs is at the bottom": {[]v1alpha1.ComponentDependencies{needs("a")}, map[string]int{"a": 0}},
		"each need on the way is one more":           {[]v1alpha1.ComponentDependencies{needs("a", "b"), needs("b", "c")}, map[string]int{"a": 2, "b": 1, "c": 0}},
		"the longer of two ways counts":              {[]v1alpha1.ComponentDependencies{needs("a", "c", "b"), needs("b", "c")}, map[string]int{"a": 2, "b": 1, "c": 0}},
		"a component that is listed twice has both":  {[]v1alpha1.ComponentDependencies{needs("a", "b"), needs("b", "c"), needs("a", "c")}, map[string]int{"a": 2, "b": 1, "c": 0}},
		"a way ends where it would come back":        {[]v1alpha1.ComponentDependencies{needs("a", "b"), needs("b", "a", "c")}, map[string]int{"a": 2, "b": 1, "c": 0}},
		"a component may need itself":                {[]v1alpha1.ComponentDependencies{needs("a", "a")}, map[string]int{"a": 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 20 { // the order of a map of Go must not decide
				if diff := cmp.Diff(test.want, depths(test.graph)); diff != "" {
					t.Fatalf("depths (-want +got):\n%s", diff)
				}
			}
		})
	}
}
