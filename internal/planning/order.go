// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// sortPlans puts plans into one order: caches list in none.
func sortPlans(plans []v1alpha1.RemediationPlan) {
	slices.SortFunc(plans, func(a, b v1alpha1.RemediationPlan) int { return comparePlans(&a, &b) })
}

func laterPlan(a, b *v1alpha1.RemediationPlan) bool { return comparePlans(a, b) > 0 }

// comparePlans orders by age, then by name.
func comparePlans(a, b *v1alpha1.RemediationPlan) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}
