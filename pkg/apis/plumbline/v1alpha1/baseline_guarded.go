// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Guarded says that the status speaks of an object under guard now: it was not
// removed by somebody who may, and a guard selects it still. What else a Baseline
// says is of the past and counts nowhere.
func (b *Baseline) Guarded() bool {
	return b.Status.RetirementTime == nil && b.Status.State != StateRetired && b.Status.State != StateNotGuarded
}
