// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// intended writes, if this run has seen everything since the intent was stored;
// else it finds out what came of the intent.
func (s *State) intended(step *v1alpha1.PlanStep) Effect {
	f := s.Facts.Of(step.Index)
	if f.Written != nil {
		return s.written(step, f)
	}
	if !s.fresh(step, f) {
		return s.recover(step, f)
	}
	if s.tooLate(step) {
		return s.skip(step, v1alpha1.ReasonDeadlineExceeded, "its creation was not sent in time: the API server admits it until %s", s.lastSecond(step))
	}
	if e := s.holdIntent(step, f); e != nil {
		return e
	}
	return WriteTarget{step.Index}
}

// fresh says that the intent was stored by this run, from what this run read and
// tried: then nothing can have been written by it yet.
func (s *State) fresh(step *v1alpha1.PlanStep, f StepFacts) bool {
	i, t := step.Intent, f.Target
	return i != nil && t != nil && f.Tried != nil && f.Tried.Result == Stored && step.Fence == "" &&
		i.Epoch == s.Plan.Status.Epoch && i.ResourceVersion == t.ResourceVersion && i.UID == t.UID
}

// written says what follows from the answer to the write.
func (s *State) written(step *v1alpha1.PlanStep, f StepFacts) Effect {
	switch w := f.Written; w.Result {
	case Stored:
		return s.apply(step, w, v1alpha1.ResultResponse)
	case Conflicted:
		if step.Attempts+1 >= maxAttempts {
			// The network may have repeated the request, and the conflict may be one with
			// the first copy: only the target tells.
			return s.recover(step, f)
		}
		return s.lookAgain(step)
	case Gone:
		return s.skip(step, v1alpha1.ReasonTargetReplaced, "it is gone")
	case Forbidden:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonNotAllowed, w.Message)
	case Refused:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonRefused, w.Message)
	case Lost:
	}
	return s.wait(poll, "the write has no answer; the target will tell")
}

func (s *State) apply(step *v1alpha1.PlanStep, w *Write, origin v1alpha1.ResultOrigin) Effect {
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		n.State = v1alpha1.StepApplied
		n.Result = &v1alpha1.StepResult{
			ResourceVersion: w.ResourceVersion, Hash: w.Hash, DDEM002Hash: w.DDEM002Hash, UID: w.UID, Generation: w.Generation, Origin: origin, RecordTime: *at,
		}
		note(n, "written as version "+w.ResourceVersion, at)
	})
}

// recover finds out from the target alone what came of an intent. A fence of this run is stored before:
// the target shows the fence, too.
func (s *State) recover(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if e := s.fenced(step, f); e != nil {
		return e
	}
	if f.Target == nil {
		return ReadTarget{step.Index}
	}
	if e := s.unlessNothingCame(step, f.Target); e != nil {
		return e
	}
	switch {
	case s.quarantines(step) && (f.Target.Read == No || f.Target.UID != step.Intent.UID):
		return s.fenceThenSkip(step, f, v1alpha1.ReasonTargetReplaced, "it is gone")
	case s.quarantines(step) && f.Target.Hash != s.target(step).DriftedHash:
		// The Baseline will never again tell of the drift that the plan is about.
		return s.fenceThenSkip(step, f, v1alpha1.ReasonTargetMoved, "it changed since the plan was made")
	case f.Target.Ending:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonTerminating, "it, or its namespace, is being deleted")
	case f.Target.Unwanted != "":
		return s.fenceThenSkip(step, f, v1alpha1.ReasonTargetMoved, f.Target.Unwanted)
	case step.Attempts+1 >= maxAttempts:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonTargetContended, "it could not be written, however often it was tried")
	case !s.Now.Before(s.Plan.Spec.Plan.DeadlineTime.Time):
		return s.fenceThenSkip(step, f, v1alpha1.ReasonDeadlineExceeded, "the plan's time is over")
	}
	if e := s.holdIntent(step, f); e != nil {
		return e
	}
	return s.rearm(step, f)
}

// unlessNothingCame says what follows when an intent was stored, or nobody can
// say; nil when it certainly was not, so far.
func (s *State) unlessNothingCame(step *v1alpha1.PlanStep, t *Target) Effect {
	switch s.came(step, t) {
	case cameStored:
		return s.apply(step, &Write{
			ResourceVersion: t.ResourceVersion, Hash: s.leftHash(step, t), DDEM002Hash: t.DDEM002Hash, UID: t.UID, Generation: t.Generation,
		}, v1alpha1.ResultRecovered)
	case cameGone:
		return s.fail(step, v1alpha1.ReasonTargetReplaced, "it is gone, and it is unknown whether it was written before")
	case cameMoved:
		if e := s.awaitAssessment(t, step.Intent.StorageTime.Add(assessmentTimeout)); e != nil {
			return e
		}
		return s.fail(step, v1alpha1.ReasonTargetMoved, "it changed, and it is unknown whether it was written before")
	case cameNothing:
		return nil
	case cameNotThere:
		return s.notThere(step)
	case cameUnknown:
	}
	return s.wait(again, "the target could not be read")
}

// notThere ends a step that was to make its target, and finds nothing: it may have
// been made and removed again, so it is not made a second time. A request that is
// under way has to be over first. A step has one request to make its target, so that
// a refusal proves that the step did not write.
func (s *State) notThere(step *v1alpha1.PlanStep) Effect {
	if e := s.outwait(step); e != nil {
		return e
	}
	if w := s.Facts.Of(step.Index).Written; w != nil && (w.Result == Forbidden || w.Result == Refused) {
		return s.skip(step, v1alpha1.ReasonDeadlineExceeded, "the API server admits its creation until %s, and refused it: %s", s.lastSecond(step), w.Message)
	}
	return s.fail(step, v1alpha1.ReasonTargetReplaced, "it does not exist, and it is unknown whether it was made and removed since")
}

// rearm tries again what is proven not to have been written. A request of before
// that is still under way is bound to the old version: if that is the present
// one, the API server stores one of the two.
func (s *State) rearm(step *v1alpha1.PlanStep, f StepFacts) Effect {
	if e, denied := s.authorized(step, f); denied {
		return s.fenceThenSkip(step, f, v1alpha1.ReasonNotAllowed, f.Denied)
	} else if e != nil {
		return e
	}
	switch f.Revision {
	case NotAsked:
		return LoadRevision{step.Index}
	case Unknown:
		return s.wait(again, "the authorized body could not be read")
	case No:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonRevisionDamaged, s.target(step).Revision+" is not the one in the plan")
	case Yes:
	}
	if f.Tried == nil {
		return Try{step.Index}
	}
	switch f.Tried.Result {
	case Stored:
		if f.Tried.Hash == s.target(step).DesiredHash {
			return s.begunAgain(step, f)
		}
		return s.fenceThenSkip(step, f, v1alpha1.ReasonWouldNotConverge, "a dry run leads elsewhere now")
	case Forbidden:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonNotAllowed, f.Tried.Message)
	case Refused:
		return s.fenceThenSkip(step, f, v1alpha1.ReasonRefused, f.Tried.Message)
	case Conflicted, Gone, Lost:
	}
	return s.wait(poll, noAnswer(f))
}

// begunAgain stores the intent again, if the standby still answers all requests.
func (s *State) begunAgain(step *v1alpha1.PlanStep, f StepFacts) Effect {
	e, refused := s.serveByStandby(step, f)
	switch {
	case refused != "":
		return s.fenceThenSkip(step, f, v1alpha1.ReasonNoStandby, refused)
	case e != nil:
		return e
	}
	return s.intendAgain(step, f)
}

func (s *State) intendAgain(step *v1alpha1.PlanStep, f StepFacts) Effect {
	return s.change(step, func(n *v1alpha1.PlanStep, at *metav1.Time) {
		n.Attempts++
		n.Fence = ""
		n.Intent = s.intentOn(f, at)
		note(n, "it was not written; once more, over version "+f.Target.ResourceVersion, at)
	})
}

// lastSecond is [State.LastSecond] for people.
func (s *State) lastSecond(step *v1alpha1.PlanStep) string {
	return s.LastSecond(step.Index).UTC().Format(time.RFC3339)
}

// intentOn returns the intent to write what was tried over the target as it was read.
func (s *State) intentOn(f StepFacts, at *metav1.Time) *v1alpha1.StepIntentRecord {
	t := f.Target
	return &v1alpha1.StepIntentRecord{
		Epoch: s.Plan.Status.Epoch, UID: t.UID, ResourceVersion: t.ResourceVersion, Generation: t.Generation, PreHash: t.Hash, DDEM002Hash: t.DDEM002Hash,
		Artifacts: f.Tried.Artifacts, StorageTime: *at,
	}
}

// fenceThenSkip ends an intent without an effect, once none can come any more. That
// the API server has refused the write is not enough: an earlier request, or one
// that the network repeats, would be stored when the reason of the refusal is gone.
func (s *State) fenceThenSkip(step *v1alpha1.PlanStep, f StepFacts, why v1alpha1.StepReason, message string) Effect {
	if e := s.fence(step, f); e != nil {
		return e
	}
	return s.skip(step, why, "%s", message)
}

// came is what came of an intent.
type came int

const (
	cameUnknown came = iota
	cameStored
	cameNothing
	cameMoved
	cameGone
	cameNotThere
)

// came reads it off the target. That the hash is what it was proves nothing: it
// may have been written and put back. But nobody has written the spec while the
// generation stands, and nobody anything while the resourceVersion does.
func (s *State) came(step *v1alpha1.PlanStep, t *Target) came {
	i := step.Intent
	switch {
	case t.Read == Unknown || t.Read == NotAsked || i == nil:
		return cameUnknown
	case i.UID == "": // it was to be made
		return s.cameMade(step, t)
	case s.quarantines(step):
		return s.cameQuarantine(step, t)
	case t.Read == No || t.UID != i.UID:
		return cameGone
	case s.arrived(step, t):
		return cameStored
	case t.ResourceVersion == i.ResourceVersion, step.Fence != "" && t.ResourceVersion == step.Fence:
		return cameNothing
	case i.Generation > 0 && t.Generation == i.Generation && t.Hash == i.PreHash:
		return cameNothing
	}
	return cameMoved
}

func (s *State) cameMade(step *v1alpha1.PlanStep, t *Target) came {
	switch {
	case t.Read == No:
		return cameNotThere
	case s.arrived(step, t):
		return cameStored
	}
	return cameMoved
}
