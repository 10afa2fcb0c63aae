// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Leftover says what to do about an entry of a ledger that has not ended.
type Leftover int

// What can be done about it.
const (
	// Keep it: its step is under way.
	Keep Leftover = iota
	// GiveBack its place: its step wrote nothing and never will.
	GiveBack
	// CountSucceeded and CountFailed end it.
	CountSucceeded
	CountFailed
)

// LeftoverOf says what to do about an entry, given its plan as it is stored now;
// nil when that plan is gone. An executor that slept may reserve a place for a
// step that another one has ended meanwhile, and a plan may be deleted with its
// namespace: nobody else would ever give such a place back. Whoever asks looks
// at all entries from time to time.
func LeftoverOf(plan *v1alpha1.RemediationPlan, entry *v1alpha1.LedgerEntry) Leftover {
	if plan == nil || string(plan.UID) != entry.PlanUID || int(entry.Step) >= len(plan.Status.Steps) {
		return CountFailed // nobody knows what it did
	}
	step := &plan.Status.Steps[entry.Step]
	if !ended(step) || step.Settled != v1alpha1.Enabled {
		return Keep
	}
	switch step.State {
	case v1alpha1.StepVerified:
		return CountSucceeded
	case v1alpha1.StepSkipped, v1alpha1.StepFenced:
		return GiveBack
	case v1alpha1.StepFailed, v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
	}
	return CountFailed
}
