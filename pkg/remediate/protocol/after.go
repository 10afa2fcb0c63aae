// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// after says what is left to do for a step that has ended, or nil. What the ledgers and the
// records have answered goes into the next status that is stored, see [State.write]: who dies
// before that asks again, and both answer the same.
func (s *State) after(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if step.Settled != v1alpha1.Enabled && f.Settled != Yes {
		return s.settle(step, f)
	}
	if step.Evidence == nil && f.Recorded != Yes {
		return s.record(step, f)
	}
	if e := s.retireStandby(step, f); e != nil {
		return e
	}
	return s.letGoOfTarget(step, f)
}

// settle tells the ledgers. What was skipped or fenced is proven to have written
// nothing, and gives its place back.
func (s *State) settle(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if f.Settled == Unknown {
		return s.wait(again, "the ledgers could not be told")
	}
	outcome, wrote := outcomeOf(step)
	if !wrote {
		return Release{step.Index}
	}
	return Settle{step.Index, outcome}
}

// outcomeOf returns how the ledgers count a step that has ended; wrote is false for a
// step without a write, for certain. A step that was written, and whose plan
// was ended before its target could be healthy, did not fail.
func outcomeOf(step *v1alpha1.PlanStep) (outcome v1alpha1.LedgerOutcome, wrote bool) {
	switch step.State {
	case v1alpha1.StepVerified:
		return v1alpha1.LedgerSucceeded, true
	case v1alpha1.StepSkipped, v1alpha1.StepFenced:
		return "", false
	case v1alpha1.StepFailed:
		if step.Reason == v1alpha1.ReasonStopped {
			return v1alpha1.LedgerStopped, true
		}
	case v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
	}
	return v1alpha1.LedgerFailed, true
}

func (s *State) record(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if f.Recorded == Unknown {
		return s.wait(again, "the record could not be written")
	}
	return Record{step.Index}
}

// noteEnds adds to a status what is known of the steps that have ended.
func (s *State) noteEnds(n *v1alpha1.RemediationPlanStatus) (changed bool) {
	for i := range s.Plan.Status.Steps {
		step, f := &s.Plan.Status.Steps[i], s.Facts.Of(s.Plan.Status.Steps[i].Index)
		if !ended(step) {
			continue
		}
		if step.Settled != v1alpha1.Enabled && f.Settled == Yes {
			n.Steps[i].Settled, changed = v1alpha1.Enabled, true
		}
		if step.Evidence == nil && f.Recorded == Yes {
			n.Steps[i].Evidence, changed = f.Evidence.DeepCopy(), true
		}
	}
	return changed
}
