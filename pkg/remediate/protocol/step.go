// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// step says what a step does that has not ended.
func (s *State) step(step *v1alpha1.PlanStep) Effect {
	switch step.State {
	case v1alpha1.StepPlanned:
		return s.planned(step)
	case v1alpha1.StepReserved:
		return s.reserved(step)
	case v1alpha1.StepIntent:
		return s.intended(step)
	case v1alpha1.StepApplied:
		return s.applied(step)
	case v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
	}
	return Wait{Why: fmt.Sprintf("step %d is in a state that this version does not know: %s", step.Index, step.State)}
}

func (s *State) target(step *v1alpha1.PlanStep) *v1alpha1.PlanTarget {
	return &s.Plan.Spec.Plan.Targets[step.Index]
}

// change stores a change of one step.
func (s *State) change(step *v1alpha1.PlanStep, how func(*v1alpha1.PlanStep, *metav1.Time)) WriteStatus {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) { how(&n.Steps[step.Index], s.at()) })
}

// skip ends a step of which it is certain that it wrote nothing, and never will.
func (s *State) skip(step *v1alpha1.PlanStep, why v1alpha1.StepReason, format string, args ...any) Effect {
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		end(n, v1alpha1.StepSkipped, why, fmt.Sprintf(format, args...), at)
	})
}

// fail ends a step that wrote, or may have.
func (s *State) fail(step *v1alpha1.PlanStep, why v1alpha1.StepReason, format string, args ...any) Effect {
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		end(n, v1alpha1.StepFailed, why, fmt.Sprintf(format, args...), at)
	})
}

// planned asks for everything that a step needs before it may look at its target: the
// right, a place in the ledgers, and the target for itself. The claim comes last, because a
// step may wait a day for its place, and other plans may have the target meanwhile.
func (s *State) planned(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if e := s.yield(step, f); e != nil {
		return e
	}
	if e, denied := s.authorized(step, f); denied {
		return s.skip(step, v1alpha1.ReasonNotAllowed, "%s", f.Denied)
	} else if e != nil {
		return e
	}
	return s.place(step, f)
}

// claimed takes the target of a step that has its place, and begins the step.
func (s *State) claimed(step *v1alpha1.PlanStep, f StepFacts) Effect {
	switch f.Claimed {
	case NotAsked:
		return ClaimTarget{step.Index}
	case Unknown:
		return s.wait(again, "the target could not be claimed")
	case No:
		return s.skip(step, v1alpha1.ReasonClaimed, "plan %s holds it", f.ClaimedBy)
	case Yes:
	}
	return s.granted(step)
}

// authorized asks whether the step may write. The effect asks, or waits, and is nil when
// that is known. The answer counts until the plan waits: a right may be taken away while
// a plan is paused.
func (s *State) authorized(step *v1alpha1.PlanStep, f StepFacts) (e Effect, denied bool) {
	switch f.Authorized {
	case NotAsked:
		return Authorize{step.Index}, false
	case Unknown:
		return s.wait(again, "whether the requester may write the target could not be asked"), false
	case No:
		return nil, true
	case Yes:
	}
	return nil, false
}

// place asks the mirror, which may refuse, and then the ledgers, which alone grant.
func (s *State) place(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if f.Mirror == nil {
		return AskMirror{step.Index}
	}
	if f.Mirror.Granted == No {
		return s.refused(step, f.Mirror)
	}
	if f.Place == nil {
		return Reserve{step.Index}
	}
	switch {
	case f.Place.Ended:
		// The ledger knows more than the plan: a restored backup, say. What it did is
		// not known here, and it is not done again.
		return s.fail(step, v1alpha1.ReasonStopped, "the ledger says that this step has ended")
	case f.Place.Granted == Yes:
		return s.claimed(step, f)
	case f.Place.Granted == No:
		return s.refused(step, f.Place)
	}
	return s.wait(again, "the ledgers could not be asked")
}

// refused waits for a place. An earlier run may have taken the target when it had a place.
func (s *State) refused(step *v1alpha1.PlanStep, p *Place) Effect {
	d := deferral{v1alpha1.PlanDeferred, p.Refusal, p.Until}
	if e, _ := s.yieldFor(step, &d); e != nil {
		return e
	}
	return s.waits(d)
}

// granted begins the step. What may hold the plan back is looked at again before
// it writes, and before the next one begins.
//
// The status passes: what the ledgers and the Baseline have is given back by whoever finds the step
// Planned, so the status need not tell of that before the intent does, unless the step has to wait.
func (s *State) granted(step *v1alpha1.PlanStep) Effect {
	e := s.write(func(n *v1alpha1.RemediationPlanStatus) {
		own := &n.Steps[step.Index]
		own.State, own.StartTime = v1alpha1.StepReserved, s.at()
		note(own, "granted", s.at())
		n.Phase, n.DeferralReason, n.ResumeTime = v1alpha1.PlanRunning, "", nil
		if n.StartTime == nil {
			n.StartTime = s.at()
		}
	})
	e.Passing = true
	e.Forget.Brakes = true
	return e
}

// reserved reads the target and says what it is about to do, once a dry run has
// shown that it leads where it should.
func (s *State) reserved(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if e, denied := s.authorized(step, f); denied {
		return s.skip(step, v1alpha1.ReasonNotAllowed, "%s", f.Denied)
	} else if e != nil {
		return e
	}
	if e := s.look(step, f); e != nil {
		return e
	}
	switch f.Revision {
	case NotAsked:
		return LoadRevision{step.Index}
	case Unknown:
		return s.wait(again, "the authorized body could not be read")
	case No:
		return s.skip(step, v1alpha1.ReasonRevisionDamaged, "%s is not the one in the plan", s.target(step).Revision)
	case Yes:
	}
	return s.tried(step, f)
}

// look reads the target, and ends the step when it is not as the plan says.
func (s *State) look(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if f.Target == nil {
		return ReadTarget{step.Index}
	}
	want, t := s.target(step), f.Target
	made := want.UID == "" // it is to be made
	switch {
	case t.Read == Unknown:
		return s.wait(again, "the target could not be read")
	case t.Ending:
		return s.skip(step, v1alpha1.ReasonTerminating, "it, or its namespace, is being deleted")
	case t.Unwanted != "":
		return s.skip(step, v1alpha1.ReasonTargetMoved, "%s", t.Unwanted)
	case t.Read == No && made:
		return s.mild(step, t)
	case t.Read == No:
		return s.skip(step, v1alpha1.ReasonTargetReplaced, "it is gone")
	case made && t.Hash == want.DesiredHash:
		return s.skip(step, v1alpha1.ReasonAlreadyDesired, "another writer recreated it")
	case made || t.UID != want.UID:
		return s.skip(step, v1alpha1.ReasonTargetReplaced, "another object has its name")
	case t.Contended:
		return s.skip(step, v1alpha1.ReasonTargetContended, "writers fight over it")
	case s.arrived(step, t):
		return s.skip(step, v1alpha1.ReasonAlreadyDesired, "it is as it should be")
	case t.Hash != want.DriftedHash:
		return s.movedBefore(step, t)
	}
	return s.mild(step, t)
}

// mild ends a step whose drift has become milder than the policy puts back by itself; nil when
// the drift has not, or a person has asked for the plan.
func (s *State) mild(step *v1alpha1.PlanStep, t *Target) Effect {
	if t.Mild == "" || s.asked() {
		return nil
	}
	return s.skip(step, v1alpha1.ReasonBelowSeverity, "%s", t.Mild)
}

// movedBefore ends a step whose target was changed before the step wrote it.
func (s *State) movedBefore(step *v1alpha1.PlanStep, t *Target) Effect {
	if step.StartTime != nil {
		if e := s.awaitAssessment(t, step.StartTime.Add(assessmentTimeout)); e != nil {
			return e
		}
	}
	return s.skip(step, v1alpha1.ReasonTargetMoved, "it changed since the plan was made")
}

// arrived says that a target is as the step leaves it. A restart and a quarantine leave the
// hash alone; their token says which step did it.
func (s *State) arrived(step *v1alpha1.PlanStep, t *Target) bool {
	want := s.target(step)
	switch want.Action {
	case v1alpha1.ActionRestart:
		return t.RestartedFor == Token(s.Plan, step.Index)
	case v1alpha1.ActionQuarantine:
		return t.Quarantine.Token == Token(s.Plan, step.Index)
	case v1alpha1.ActionNotifyOnly, v1alpha1.ActionReconcile, v1alpha1.ActionRollback, v1alpha1.ActionScale:
	}
	return t.Hash == want.DesiredHash
}

// Token names a step within all plans; a restart writes it where a person's
// would write the time, so that it is the same however often it is tried.
func Token(plan *v1alpha1.RemediationPlan, step int32) string {
	return fmt.Sprintf("%s-%d", plan.UID, step)
}

// tried has a dry run show where the write leads, and stores the intent.
func (s *State) tried(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if s.makes(step) && s.TimeUnknown {
		return s.untold() // a creation says until when it may be stored
	}
	if f.Tried == nil {
		return Try{step.Index}
	}
	want := s.target(step)
	switch f.Tried.Result {
	case Stored:
		if f.Tried.Hash != want.DesiredHash {
			return s.skip(step, v1alpha1.ReasonWouldNotConverge, "a dry run leads to %s, not to %s", f.Tried.Hash, want.DesiredHash)
		}
		return s.begun(step, f)
	case Conflicted:
		return s.lookAgain(step)
	case Gone:
		return s.skip(step, v1alpha1.ReasonTargetReplaced, "it is gone")
	case Forbidden:
		return s.skip(step, v1alpha1.ReasonNotAllowed, "the executor may not write it: %s", f.Tried.Message)
	case Refused:
		return s.skip(step, v1alpha1.ReasonRefused, "%s", f.Tried.Message)
	case Lost:
	}
	return s.wait(again, noAnswer(f))
}

// begun stores the intent, once a standby answers the requests of a target that is to have one.
func (s *State) begun(step *v1alpha1.PlanStep, f StepFacts) Effect {
	e, refused := s.serveByStandby(step, f)
	switch {
	case refused != "":
		return s.skip(step, v1alpha1.ReasonNoStandby, "%s", refused)
	case e != nil:
		return e
	}
	return s.intend(step, f)
}

// noAnswer says why a dry run does not count.
func noAnswer(f StepFacts) string {
	if f.Tried.Message == "" {
		return "the dry run has no answer"
	}
	return "the dry run has no answer: " + f.Tried.Message
}

// lookAgain counts a conflict, and reads the target again; who always meets
// another writer gives up. Nothing can have been written: the version that every
// request of the step was bound to is not the present one any more.
func (s *State) lookAgain(step *v1alpha1.PlanStep) Effect {
	if step.Attempts+1 >= maxAttempts {
		return s.skip(step, v1alpha1.ReasonTargetContended, "%d times another writer had written just before", maxAttempts)
	}
	e := s.change(step, func(n *v1alpha1.PlanStep, _ *metav1.Time) { n.Attempts++ })
	e.Forget.Steps = []int32{step.Index}
	return e
}

// intend stores what is about to be written, bound to what was read. The message says from
// now on what an object that is made again lacks.
func (s *State) intend(step *v1alpha1.PlanStep, f StepFacts) Effect {
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		n.State, n.Fence = v1alpha1.StepIntent, ""
		n.Intent = s.intentOn(f, at)
		if f.Target.Read == No {
			n.Message = diff.TruncateText(f.Tried.Lacks, MaxMessage)
			note(n, "about to make it", at)
			return
		}
		note(n, "about to write over version "+f.Target.ResourceVersion, at)
	})
}
