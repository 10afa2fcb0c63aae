// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// holdIntent returns what keeps an intent from being written; nil when nothing does. What may
// last revokes the intent: the window may open tomorrow, and a step that waits holds neither a
// place nor its target.
func (s *State) holdIntent(step *v1alpha1.PlanStep, f StepFacts) Effect {
	e, deferred := s.checkBrakes(step)
	if deferred == nil {
		return e
	}
	if s.unsent(step, f) {
		return s.revoke(step)
	}
	if e := s.fence(step, f); e != nil {
		return e
	}
	return s.revoke(step)
}

// unsent says that no request with the intent of a step has been sent: this run has stored the
// intent, and no run stored one before.
func (s *State) unsent(step *v1alpha1.PlanStep, f StepFacts) bool {
	return step.Attempts == 0 && f.Written == nil && s.fresh(step, f)
}

// revoke takes an intent back that can no longer be stored, and has the step begin again. A
// fence counts as an attempt, so that each fence of a step has a record of its own.
func (s *State) revoke(step *v1alpha1.PlanStep) Effect {
	e := s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		if n.Fence != "" {
			n.Attempts++
		}
		n.State, n.Intent, n.Fence = v1alpha1.StepPlanned, nil, ""
		note(n, "deferred: its write can no longer be stored", at)
	})
	e.Forget.Steps = []int32{step.Index}
	return e
}
