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
	// Count it, with the outcome that [LeftoverOf] returns beside this.
	Count
)

// LeftoverOf says what to do about an entry, given its plan as it is stored now;
// nil when that plan is gone. An executor that slept may reserve a place for a
// step that another one has ended meanwhile, and a plan may be deleted with its
// namespace: nobody else would ever give such a place back. Whoever asks looks
// at all entries from time to time.
func LeftoverOf(plan *v1alpha1.RemediationPlan, entry *v1alpha1.LedgerEntry) (Leftover, v1alpha1.LedgerOutcome) {
	if plan == nil || string(plan.UID) != entry.PlanUID || int(entry.Step) >= len(plan.Status.Steps) {
		return Count, v1alpha1.LedgerFailed // its effect is not known
	}
	step := &plan.Status.Steps[entry.Step]
	if step.State == v1alpha1.StepPlanned && entry.Epoch < plan.Status.Epoch {
		return GiveBack, "" // its executor died; the one that has the plan asks for a place of its own
	}
	if !ended(step) || step.Settled != v1alpha1.Enabled {
		return Keep, ""
	}
	outcome, wrote := outcomeOf(step)
	if !wrote {
		return GiveBack, ""
	}
	return Count, outcome
}
