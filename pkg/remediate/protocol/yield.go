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
	case step.State != v1alpha1.StepPlanned || step.StartTime == nil:
		return nil
	}
	if e := s.letGo(step, f); e != nil {
		return e
	}
	e := s.change(step, func(n *v1alpha1.PlanStep, _ *metav1.Time) { n.StartTime = nil })
	e.Forget.Steps = []int32{step.Index}
	return e
}

// letGo gives back the place and the target of a step that has written nothing, and before that the
// requests that a standby has; nil when all is given back. It also asks for a step that holds neither as far as the status tells: an
// earlier run may have taken them, and not come to the status that says so.
func (s *State) letGo(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if e := s.retireStandby(step, f); e != nil {
		return e
	}
	switch f.Settled {
	case NotAsked:
		return Release{step.Index}
	case Unknown:
		return s.wait(again, "its place could not be given back")
	case Yes, No:
	}
	return s.letGoOfTarget(step, f)
}

// letGoOfTarget gives back the target of a step; nil when it is given back.
func (s *State) letGoOfTarget(step *v1alpha1.PlanStep, f StepFacts) Effect {
	switch f.Let {
	case NotAsked:
		return ReleaseTarget{step.Index}
	case Unknown:
		return s.wait(again, "the target could not be let go of")
	case Yes, No:
	}
	return nil
}

// yieldFor gives back what a step holds that is deferred, and returns the deferral to tell of.
// What no status tells of is given back once for each deferral, and before the status tells of
// that deferral: afterwards nothing would ask again.
func (s *State) yieldFor(step *v1alpha1.PlanStep, d *deferral) (Effect, *deferral) {
	f := s.Facts.Of(step.Index)
	if e := s.yield(step, f); e != nil {
		return e, d
	}
	if step.State == v1alpha1.StepPlanned && !s.told(*d) {
		if e := s.letGo(step, f); e != nil {
			return e, nil
		}
	}
	return nil, d
}

// yieldAll gives back what the steps hold of a plan that is paused.
func (s *State) yieldAll() Effect {
	var waits *Wait
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		e := s.yield(step, s.Facts.Of(step.Index))
		if e == nil && step.State == v1alpha1.StepPlanned {
			e = s.letGo(step, s.Facts.Of(step.Index))
		}
		switch e := e.(type) {
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
