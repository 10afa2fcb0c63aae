// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"encoding/json"
	"time"

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

// Protecting returns the name of the first budget that selects pods with these labels, and that
// stood as it is when the drift was first seen; empty without one. A selector that cannot be
// read selects all pods.
func Protecting(budgets []policyv1.PodDisruptionBudget, pods labels.Set, firstSeen time.Time) string {
	for i := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budgets[i].Spec.Selector)
		if (err != nil || selector.Matches(pods)) && stood(&budgets[i], firstSeen) {
			return budgets[i].Name
		}
	}
	return ""
}

// stood reports whether a budget was created, and its spec written last, at a time or before
// it. A budget that comes after a drift may be there to keep the drift.
//
// A generation of 1 says that the spec is as it was created. No field has the time of a later
// write, so the times of the field managers of the spec have to show it. The writer of a budget
// can forge those times, so a wait for budgets has an end as well.
func stood(budget *policyv1.PodDisruptionBudget, at time.Time) bool {
	switch {
	case at.IsZero():
		return true
	case budget.CreationTimestamp.After(at):
		return false
	case budget.Generation <= 1:
		return true
	}
	known := false
	for _, entry := range budget.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil || !ownsSpec(entry.FieldsV1.GetRawBytes()) {
			continue
		}
		if entry.Time == nil || entry.Time.After(at) {
			return false
		}
		known = true
	}
	return known
}

// ownsSpec reports whether a set of fields has some of the spec, or cannot be read.
func ownsSpec(fields []byte) bool {
	var set map[string]json.RawMessage
	if err := json.Unmarshal(fields, &set); err != nil {
		return true
	}
	_, owns := set["f:spec"]
	return owns
}
