// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Guarded says that the status speaks of an object under guard now: it was not
// removed by somebody who may, and a guard selects it still. What else a Baseline
// says is of the past and counts nowhere.
func (b *Baseline) Guarded() bool {
	ready := meta.FindStatusCondition(b.Status.Conditions, ConditionReady)
	released := ready != nil && ready.Status == metav1.ConditionUnknown && ready.Reason == ReasonNotGuarded
	return b.Status.RetirementTime == nil && !released
}
