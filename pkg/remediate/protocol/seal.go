// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// seal makes sure that no write of the plan can be stored any more, and only then
// says that it has ended or is paused.
func (s *State) seal() Effect {
	pausing := s.Plan.Status.EndingAs == v1alpha1.PlanPaused
	if pausing && s.Plan.Spec.Control.Verb == v1alpha1.PlanCancel {
		control := s.Plan.Spec.Control
		return s.sealing(v1alpha1.PlanCanceled, control.RequestedBy, control.Reason)
	}
	var waits *Wait
	for i := range s.Plan.Status.Steps {
		switch e := s.sealStep(&s.Plan.Status.Steps[i], pausing).(type) {
		case nil:
		case Wait:
			waits = soonest(waits, e)
		default:
			return e
		}
	}
	if waits != nil {
		return *waits
	}
	if pausing {
		return s.write(func(n *v1alpha1.RemediationPlanStatus) { n.Phase, n.EndingAs = v1alpha1.PlanPaused, "" })
	}
	if e := s.tidy(); e != nil {
		return e
	}
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		s.ends(n, n.EndingAs)
		n.EndingAs = ""
	})
}

// sealStep is what keeps a step from being sealed, or nil.
func (s *State) sealStep(step *v1alpha1.PlanStep, pausing bool) Effect {
	switch step.State {
	case v1alpha1.StepPlanned, v1alpha1.StepReserved:
		if pausing {
			return nil
		}
		return s.stop(v1alpha1.ReasonStopped, "the plan was ended")
	case v1alpha1.StepIntent:
		return s.sealIntent(step, pausing)
	case v1alpha1.StepApplied:
		if pausing {
			return nil
		}
		return s.sealApplied(step)
	case v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
	}
	return nil
}

// sealIntent fences an intent, unless it turns out that it was stored. A pause revokes it.
func (s *State) sealIntent(step *v1alpha1.PlanStep, pausing bool) Effect {
	if e := s.fence(step, s.Facts.Of(step.Index)); e != nil {
		return e
	}
	if pausing {
		return s.revoke(step)
	}
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		end(n, v1alpha1.StepFenced, v1alpha1.ReasonStopped, "it was stopped before its write could be stored", at)
	})
}

// fence moves the target's resourceVersion, so that a request bound to the old
// one is refused whenever it arrives. It returns nil when that is stored in the
// step. When it turns out that the intent was stored after all, that is told.
func (s *State) fence(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if step.Fence != "" {
		return nil
	}
	if e := s.fenced(step, f); e != nil {
		return e
	}
	if f.Target == nil {
		return ReadTarget{step.Index}
	}
	if e := s.unlessNothingCame(step, f.Target); e != nil {
		return e
	}
	if f.Target.ResourceVersion != step.Intent.ResourceVersion {
		return nil // somebody else's write of its status has fenced it
	}
	if f.Fenced != nil && (f.Fenced.Result == Forbidden || f.Fenced.Result == Refused) {
		if step.Intent.Epoch == s.Plan.Status.Epoch && step.Attempts == 0 {
			// There was one request, which we sent and which was answered; what the
			// network makes of it is over by then.
			return s.outwait(step)
		}
		// Whoever sent the old request may get the right back before we do.
		return s.wait(again, "it cannot be fenced, and a request may be under way: "+f.Fenced.Message)
	}
	return FenceTarget{step.Index}
}

// fenced stores the answer to a fence; nil without one. The generation of some kinds counts a fence, such as
// that of a Deployment, which counts annotations. So the intent has the generation of the fence from then
// on: while that stands, nobody has written the spec since.
func (s *State) fenced(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if step.Fence != "" || f.Fenced == nil || f.Fenced.Result != Stored {
		return nil
	}
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		n.Fence = f.Fenced.ResourceVersion
		if n.Intent.Generation > 0 && f.Fenced.Generation > 0 {
			n.Intent.Generation = f.Fenced.Generation
		}
		note(n, "fenced at version "+f.Fenced.ResourceVersion, at)
	})
}

// sealApplied ends a step that has written: what it wrote stays, and how the
// target is now is all that is asked.
func (s *State) sealApplied(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if f.Target == nil {
		return ReadTarget{step.Index}
	}
	switch t := f.Target; {
	case t.Read == Unknown:
		return s.wait(again, "the target could not be read")
	case s.lifted(step, t):
		return s.lets(step, t)
	case t.Read == Yes && s.stays(step, t) && t.Ready == Yes:
		return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
			verified(n, s.describeHealth(step)+" when the plan was ended", at)
		})
	}
	return s.fail(step, v1alpha1.ReasonStopped, "the plan was ended before it was healthy")
}

// paused waits until somebody resumes or ends the plan.
func (s *State) paused() Effect {
	switch control := s.Plan.Spec.Control; {
	case control.Verb == v1alpha1.PlanCancel:
		return s.sealing(v1alpha1.PlanCanceled, control.RequestedBy, control.Reason)
	case s.Facts.Brakes.Known && s.Facts.Brakes.Halted != "":
		return s.sealing(v1alpha1.PlanCanceled, s.Facts.Brakes.HaltedBy, s.Facts.Brakes.Halted)
	case control.Verb == v1alpha1.PlanPause:
		if e := s.finishStandbys(); e != nil {
			return e
		}
		if e := s.tidy(); e != nil {
			return e
		}
		if e := s.yieldAll(); e != nil {
			return e
		}
		return Wait{Why: "it is paused"}
	}
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		n.Phase, n.EndedBy, n.EndedReason = v1alpha1.PlanRunning, "", ""
	})
}
