// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// after says what is left to do for a step that has ended, or nil.
func (s *State) after(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if step.Settled != v1alpha1.Enabled {
		return s.settle(step, f)
	}
	if step.Evidence == nil {
		return s.record(step, f)
	}
	switch f.Let {
	case NotAsked:
		return ReleaseTarget{step.Index}
	case Unknown:
		return s.wait(again, "the target could not be let go of")
	case Yes, No:
	}
	return nil
}

// settle tells the ledgers. What was skipped or fenced is proven to have written
// nothing, and gives its place back.
func (s *State) settle(step *v1alpha1.PlanStep, f StepFacts) Effect {
	switch f.Settled {
	case NotAsked:
	case Unknown:
		return s.wait(again, "the ledgers could not be told")
	case Yes, No:
		return s.write(func(n *v1alpha1.RemediationPlanStatus) { n.Steps[step.Index].Settled = v1alpha1.Enabled })
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
	switch f.Recorded {
	case NotAsked, No:
		return Record{step.Index}
	case Unknown:
		return s.wait(again, "the record could not be written")
	case Yes:
	}
	return s.write(func(n *v1alpha1.RemediationPlanStatus) { n.Steps[step.Index].Evidence = f.Evidence.DeepCopy() })
}
