// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// applied watches a target that was written until it is healthy for long enough,
// or is not in time, or somebody changes it.
func (s *State) applied(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if f.Target == nil {
		return ReadTarget{step.Index}
	}
	t := f.Target
	late := step.Result != nil && !s.Now.Before(step.Result.At.Add(s.Health.Timeout))
	switch {
	case t.Read == Unknown || t.Ready == Unknown:
		if late {
			return s.fail(step, v1alpha1.ReasonUnhealthy, "nobody could say in %s whether it is healthy", s.Health.Timeout)
		}
		return s.wait(poll, "whether it is healthy could not be read")
	case t.Read == No, s.target(step).UID != "" && t.UID != s.target(step).UID:
		return s.fail(step, v1alpha1.ReasonTargetReplaced, "it is gone")
	case !s.arrived(step, t):
		return s.fail(step, v1alpha1.ReasonTargetMoved, "somebody changed it after it was put back")
	case t.Ready == Yes:
		return s.healthy(step)
	case late:
		return s.fail(step, v1alpha1.ReasonUnhealthy, "it was not ready %s after it was put back", s.Health.Timeout)
	case step.HealthySince != nil:
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			n.HealthySince = nil
			note(n, "no longer ready", at)
		})
	}
	return s.wait(poll, "it is not ready yet")
}

func (s *State) healthy(step *v1alpha1.PlanStep) Effect {
	if step.HealthySince == nil && s.Health.Stabilisation > 0 {
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			n.HealthySince = at
			note(n, "as it should be, and ready", at)
		})
	}
	if step.HealthySince != nil {
		if until := step.HealthySince.Add(s.Health.Stabilisation); until.After(s.Now) {
			next := s.Now.Add(poll)
			if until.Before(next) {
				next = until
			}
			return Wait{Until: next, Why: "it has to stay healthy for a while"}
		}
	}
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		end(n, v1alpha1.StepVerified, "", "as it should be, and healthy", at)
	})
}
