// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// yield gives back what a step holds that has written nothing: its place in the ledgers, and
// its target. It returns nil when the step holds neither.
//
// The status comes first. A request of an earlier run that would store the intent of the
// step is bound to the status before, and cannot be stored any more. The time of the grant
// remains until both are given back, so that another executor carries on.
func (s *State) yield(step *v1alpha1.PlanStep, f StepFacts) Effect {
	switch {
	case step.State == v1alpha1.StepReserved:
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			n.State = v1alpha1.StepPlanned
			note(n, "deferred", at)
		})
	case step.State != v1alpha1.StepPlanned || step.StartedAt == nil:
		return nil
	}
	switch f.Settled {
	case NotAsked:
		return Release{step.Index}
	case Unknown:
		return s.wait(again, "its place could not be given back")
	case Yes, No:
	}
	switch f.Let {
	case NotAsked:
		return ReleaseTarget{step.Index}
	case Unknown:
		return s.wait(again, "the target could not be let go of")
	case Yes, No:
	}
	e := s.change(step, func(n *v1alpha1.PlanStep, _ *metav1.Time) { n.StartedAt = nil })
	e.Forget.Steps = []int32{step.Index}
	return e
}

// yieldAll gives back what the steps hold of a plan that is paused.
func (s *State) yieldAll() Effect {
	var waits *Wait
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		switch e := s.yield(step, s.Facts.Of(step.Index)).(type) {
		case nil:
		case Wait:
			waits = soonest(waits, e)
		default:
			return e
		}
	}
	if waits == nil {
		return nil
	}
	return *waits
}
