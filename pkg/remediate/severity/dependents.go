// SPDX-License-Identifier: Apache-2.0

package severity

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// Dependents counts what [FindDependents] finds.
func Dependents(component string, graph []v1alpha1.ComponentDependencies) int {
	return len(FindDependents(component, graph))
}

// FindDependents finds the components that need the component, directly or through
// others; the component itself is not counted, in a cycle neither. A component
// that the graph does not mention has none. The time is linear in the graph,
// which the Environment's schema bounds to 512 components of 64 edges.
func FindDependents(component string, graph []v1alpha1.ComponentDependencies) map[string]bool {
	neededBy := map[string][]string{}
	for _, c := range graph {
		for _, need := range c.DependsOn {
			neededBy[need] = append(neededBy[need], c.Component)
		}
	}
	reached := map[string]bool{component: true}
	queue := []string{component}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, dependent := range neededBy[next] {
			if !reached[dependent] {
				reached[dependent] = true
				queue = append(queue, dependent)
			}
		}
	}
	delete(reached, component)
	return reached
}
