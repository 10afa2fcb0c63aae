// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Exhausted returns the budgets that allow no disruption now, in their order. A budget without
// pods protects none. The status of a budget counts for its own generation alone, as it does
// when the API server decides on an eviction.
func Exhausted(budgets []policyv1.PodDisruptionBudget) []policyv1.PodDisruptionBudget {
	var out []policyv1.PodDisruptionBudget
	for i := range budgets {
		b := &budgets[i]
		outdated := b.Status.ObservedGeneration < b.Generation
		if b.DeletionTimestamp == nil && (outdated || b.Status.DisruptionsAllowed <= 0 && b.Status.ExpectedPods > 0) {
			out = append(out, *b)
		}
	}
	return out
}

// Protecting returns the name of the first budget that selects pods with these labels; empty
// without one. A selector that cannot be read selects all pods.
func Protecting(budgets []policyv1.PodDisruptionBudget, pods labels.Set) string {
	for i := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budgets[i].Spec.Selector)
		if err != nil || selector.Matches(pods) {
			return budgets[i].Name
		}
	}
	return ""
}
