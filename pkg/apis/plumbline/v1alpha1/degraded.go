// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsDegradedFor says whether the condition Degraded is True with this reason.
func IsDegradedFor(conditions []metav1.Condition, reason string) bool {
	c := meta.FindStatusCondition(conditions, ConditionDegraded)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason
}
