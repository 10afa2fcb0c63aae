// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Guarded reports whether the status is about an object under guard now: no trusted writer
// removed it, and a guard still selects it. The rest of a Baseline is of the past and counts
// nowhere.
func (b *Baseline) Guarded() bool {
	return b.Status.RetirementTime == nil && b.Status.State != StateRetired && b.Status.State != StateNotGuarded
}
