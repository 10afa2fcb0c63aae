// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// applied looks at a target that was written until it is healthy for long enough,
// or is not in time, or somebody changes it. A change of the target, or the end of the time,
// has the executor look again.
func (s *State) applied(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if f.Target == nil {
		return ReadTarget{step.Index}
	}
	if s.Health == nil {
		return s.wait(again, "its policy, which defines a healthy target, could not be read")
	}
	t := f.Target
	until := s.deadline(step)
	late := !s.Now.Before(until)
	switch {
	case t.Read == Unknown || t.Ready == Unknown:
		return s.unclear(step, t)
	case s.lifted(step, t):
		return s.lets(step, t)
	case t.Read == No, s.target(step).UID != "" && t.UID != s.target(step).UID:
		return s.fail(step, v1alpha1.ReasonTargetReplaced, "it is gone")
	case !s.stays(step, t):
		if e := s.awaitAssessment(t, until); e != nil {
			return e
		}
		return s.fail(step, v1alpha1.ReasonTargetMoved, "a writer changed it after its remediation")
	case t.KeepsFields && f.Returned == nil:
		return ReturnFields{step.Index} // once in a run: a conflict or a refusal fails no step
	case t.Ready == Yes:
		return s.healthy(step)
	case late:
		return s.fail(step, v1alpha1.ReasonUnhealthy, "it was not ready %s after its remediation%s", s.Health.Timeout, t.because())
	case step.HealthyTime != nil:
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			n.HealthyTime = nil
			note(n, "no longer ready", at)
		})
	}
	return Wait{Until: until, Why: "it is not ready yet" + t.because()}
}

// deadline returns when a target that was written has to be ready at the latest.
func (s *State) deadline(step *v1alpha1.PlanStep) time.Time {
	if step.Result == nil {
		return s.Now.Add(again) // stored by no version of the protocol
	}
	return step.Result.RecordTime.Add(s.Health.Timeout)
}

// unclear waits for a target of which it is not known whether it is healthy. A read that
// failed is repeated soon; a target whose kind cannot report changes first.
func (s *State) unclear(step *v1alpha1.PlanStep, t *Target) Effect {
	until := s.deadline(step)
	if !s.Now.Before(until) {
		return s.fail(step, v1alpha1.ReasonUnhealthy, "within %s it was unknown whether it is healthy%s", s.Health.Timeout, t.because())
	}
	if soon := s.Now.Add(again); t.Read == Unknown && soon.Before(until) {
		until = soon
	}
	return Wait{Until: until, Why: "whether it is healthy could not be read" + t.because()}
}

// stays says that a target that was written is as the step left it. A restart also leaves its
// token: the token alone says nothing about the content, which a webhook or a writer may have
// changed.
func (s *State) stays(step *v1alpha1.PlanStep, t *Target) bool {
	return s.arrived(step, t) && (s.quarantines(step) || t.Hash == s.target(step).DesiredHash)
}

// because returns why a target is not ready, as the end of a sentence.
func (t *Target) because() string {
	if t.NotReady == "" {
		return ""
	}
	return ": " + t.NotReady
}

func (s *State) healthy(step *v1alpha1.PlanStep) Effect {
	if step.HealthyTime == nil && s.Health.Stabilization > 0 {
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			n.HealthyTime = at
			note(n, "as it should be, and ready", at)
		})
	}
	if step.HealthyTime != nil {
		if until := step.HealthyTime.Add(s.Health.Stabilization); until.After(s.Now) {
			return Wait{Until: until, Why: "it has to stay healthy for a while"}
		}
	}
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		verified(n, s.describeHealth(step)+s.describeKeptFields(step), at)
	})
}

// describeHealth says how a target is that was written. The readiness of an object in quarantine is
// not asked.
func (s *State) describeHealth(step *v1alpha1.PlanStep) string {
	if s.quarantines(step) {
		return "in quarantine"
	}
	return "as it should be, and healthy"
}

// describeKeptFields says, as the end of a sentence, that fields of a target stay with the executor.
func (s *State) describeKeptFields(step *v1alpha1.PlanStep) string {
	f := s.Facts.Of(step.Index)
	if f.Target == nil || !f.Target.KeepsFields || f.Returned == nil {
		return ""
	}
	return "; its fields could not be given back to their field managers: " + f.Returned.Message
}

// verified ends a step well. What its target lacks stays in the message.
func verified(n *v1alpha1.PlanStep, message string, at *metav1.Time) {
	if n.Message != "" {
		message += "; " + n.Message
	}
	end(n, v1alpha1.StepVerified, "", message, at)
}
