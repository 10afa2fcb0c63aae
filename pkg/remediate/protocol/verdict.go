// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// copyEffects copies the verdicts of assessments that have ended into the plan, or returns nil. The
// record comes first, as it does of a step. The status comes last: an executor that dies before it
// finds the record, and tells the ledger and people again.
func (s *State) copyEffects() Effect {
	if !s.AssessesEffects || s.Plan.Status.Holder != s.Holder && !Final(s.Plan.Status.Phase) {
		return nil
	}
	noted := false
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		if step.Effect != nil || step.Settled != v1alpha1.Enabled {
			continue // the ledger learns of the end of a step before it learns of its effect
		}
		if e := s.copyEffect(step); e != nil {
			return e
		}
		noted = noted || s.Facts.Of(step.Index).Assessment.Effect != nil
	}
	if !noted {
		return nil
	}
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		s.hold(n)
		for i := range n.Steps {
			f := s.Facts.Of(n.Steps[i].Index)
			if f.Assessment == nil || f.Assessment.Effect == nil || n.Steps[i].Effect != nil {
				continue
			}
			n.Steps[i].Effect = f.stepEffect()
			n.Steps[i].Effect.Evidence = f.AssessmentEvidence
		}
		n.Effect = worstOf(n.Steps)
	})
}

// copyEffect is what is left to do before the verdict on a step is noted in the plan, or nil.
func (s *State) copyEffect(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	switch {
	case f.Assessment == nil:
		return ReadAssessment{step.Index}
	case f.Assessment.Read != Yes:
		return s.wait(again, "the assessment of its effect could not be read")
	case f.Assessment.Effect == nil:
		return nil
	case f.AssessmentRecorded == NotAsked:
		return RecordAssessment{step.Index}
	case f.AssessmentRecorded != Yes:
		return s.wait(again, "the record of the assessment of its effect could not be written")
	}
	effect := *f.stepEffect()
	if _, wrote := outcomeOf(step); wrote && f.Judged != Yes {
		if f.Judged == Unknown {
			return s.wait(again, "the ledger could not be told the verdict")
		}
		return ApplyVerdict{step.Index, effect.Verdict}
	}
	if !f.Told {
		return AnnounceEffect{step.Index, effect}
	}
	return nil
}

// stepEffect is what the plan notes of the assessment; nil while the step is measured.
func (f *StepFacts) stepEffect() *v1alpha1.StepEffect {
	e := f.Assessment.Effect.DeepCopy()
	if e != nil {
		e.BreakerState = f.Turned
	}
	return e
}

// worstOf is the worst verdict on the steps that wrote; empty without one.
func worstOf(steps []v1alpha1.PlanStep) v1alpha1.EffectVerdict {
	worst := v1alpha1.EffectVerdict("")
	for i := range steps {
		if _, wrote := outcomeOf(&steps[i]); wrote && steps[i].Effect != nil && badness(steps[i].Effect.Verdict) > badness(worst) {
			worst = steps[i].Effect.Verdict
		}
	}
	return worst
}

// badness orders verdicts. An unknown one says too little.
func badness(v v1alpha1.EffectVerdict) int {
	switch v {
	case "":
		return 0
	case v1alpha1.VerdictEffective:
		return 1
	case v1alpha1.VerdictInconclusive:
		return 2
	case v1alpha1.VerdictIneffective:
		return 3
	case v1alpha1.VerdictInvalidated:
		return 4
	}
	return 2
}
