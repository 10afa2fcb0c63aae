// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// longestProtection is how long after the first sight of a drift PodDisruptionBudgets may
	// hold its repair back. The policy may have a maximum age of a drift; then half of that
	// age, if it is shorter. A tenant may write a budget that never allows a disruption.
	longestProtection = 12 * time.Hour
	// leastProtection is how long budgets may hold back a plan that begins after that time.
	leastProtection = 30 * time.Minute
)

// protected says that the write of a step would remove ready pods while a PodDisruptionBudget
// allows no disruption. The target is read for that question only when there is such a budget.
// A person who executes the plan passes the budget, and so does a target that passes the
// schedule because it is urgent.
func (s *State) protected(step *v1alpha1.PlanStep, passes bool) (Effect, *deferral) {
	until := s.protectedUntil(step)
	if !s.Facts.Brakes.NoDisruptions || passes || !s.Now.Before(until) {
		return nil, nil
	}
	target := s.Facts.Of(step.Index).Target
	switch {
	case target == nil:
		return ReadTarget{step.Index}, nil
	case target.Protected != "":
		return nil, &deferral{v1alpha1.PlanDeferred, target.Protected, until}
	}
	return nil, nil
}

// protectedUntil returns when PodDisruptionBudgets hold a step back no longer. The time comes
// from the drift, and not from the plan, because each plan that ends is followed by another.
func (s *State) protectedUntil(step *v1alpha1.PlanStep) time.Time {
	longest, begins := longestProtection, s.Plan.CreationTimestamp.Time
	if half := s.Facts.Brakes.MaximumDriftAge / 2; half > 0 && half < longest {
		longest = half
	}
	if at := s.Plan.Spec.Plan.ScheduledTime; at != nil && at.After(begins) {
		begins = at.Time
	}
	until := s.target(step).FirstSeenTime.Add(longest)
	if least := begins.Add(leastProtection); until.Before(least) {
		return least
	}
	return until
}
