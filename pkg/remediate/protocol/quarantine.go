// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// quarantines says that a step writes the Baseline of its target, and leaves the target alone.
func (s *State) quarantines(step *v1alpha1.PlanStep) bool {
	return s.target(step).Action == v1alpha1.ActionQuarantine
}

// lifted says that the quarantine of a step was stored, and has ended since. The assessor writes
// the token of the quarantine that it ends.
func (s *State) lifted(step *v1alpha1.PlanStep, t *Target) bool {
	return s.quarantines(step) && t.Quarantine.Ended == Token(s.Plan, step.Index)
}

// cameQuarantine reads off the Baseline what came of an intent. The assessor writes Baselines
// all the time, so a version that has moved says nothing. A quarantine leaves its token, also
// when it has ended, until another plan has the Baseline.
func (s *State) cameQuarantine(step *v1alpha1.PlanStep, t *Target) came {
	switch {
	case s.arrived(step, t), s.lifted(step, t):
		return cameStored
	case t.ResourceVersion == step.Intent.ResourceVersion, step.Fence != "", t.Quarantine.Held:
		return cameNothing
	}
	return cameMoved
}

// leftHash is the hash that a step left. A quarantine leaves the object as the plan found it, and
// the object may be gone by now.
func (s *State) leftHash(step *v1alpha1.PlanStep, t *Target) string {
	if s.quarantines(step) {
		return s.target(step).DesiredHash
	}
	return t.Hash
}

// lets ends the step of a quarantine that was stored and has ended since: the assessor, or a
// person, had a reason to end it.
func (s *State) lets(step *v1alpha1.PlanStep, t *Target) Effect {
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		verified(n, "it was in quarantine until "+t.Quarantine.Why, at)
	})
}
