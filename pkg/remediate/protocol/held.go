// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// deferral is what a plan waits for that may last: other plans may have the place and the
// target meanwhile.
type deferral struct {
	phase v1alpha1.PlanPhase
	why   string
	until time.Time
}

// checkBrakes asks for the time, for a person who is to execute the plan, and for the brakes. An
// effect is to be carried out first, or is a short wait.
func (s *State) checkBrakes(step *v1alpha1.PlanStep) (Effect, *deferral) {
	plan, brakes, passes := &s.Plan.Spec.Plan, s.Facts.Brakes, s.passes(step)
	if brakes.Cached {
		return Look{}, nil
	}
	if !brakes.Known {
		return s.wait(again, "the causes of a wait could not be read"), nil
	}
	if e := s.unfit(step); e != nil {
		return e, nil
	}
	if e := s.closing(); e != nil && !passes {
		return e, nil
	}
	switch {
	case s.asked():
	case plan.Trigger == v1alpha1.TriggerManual && s.Plan.Status.StartTime == nil:
		return nil, &deferral{v1alpha1.PlanDeferred, "it waits for a person to execute it", time.Time{}}
	case plan.ScheduledTime != nil && s.Now.Before(plan.ScheduledTime.Time):
		return nil, &deferral{v1alpha1.PlanScheduled, "it is scheduled", plan.ScheduledTime.Time}
	}
	if brakes.Closed != "" && (!passes || !brakes.OutsideSchedule) {
		return nil, &deferral{v1alpha1.PlanDeferred, brakes.Closed, brakes.Until}
	}
	if e, deferred := s.protected(step, passes); e != nil || deferred != nil {
		return e, deferred
	}
	return s.unrecordable()
}

// unrecordable says that what is about to begin could not be recorded. The store is asked
// last, and for nothing else: a store that hangs holds up no brake.
func (s *State) unrecordable() (Effect, *deferral) {
	switch store := s.Facts.Store; {
	case store == nil:
		return AskStore{}, nil
	case !store.Ready:
		return nil, &deferral{v1alpha1.PlanDeferred, store.Why, store.Until}
	}
	return nil, nil
}

// asked says that a person asked to execute the plan now, or asked for the plan itself.
func (s *State) asked() bool {
	return s.Plan.Spec.Control.Verb == v1alpha1.PlanExecute || s.Plan.Spec.Plan.Request != nil
}

// passes says that the schedule does not hold a step back: a person asked, or the step is
// urgent.
func (s *State) passes(step *v1alpha1.PlanStep) bool {
	return s.asked() || s.Facts.Brakes.UrgentPasses && s.target(step).Severity.Urgency == v1alpha1.UrgencyImmediate
}

// closing says that the window closes too soon, or has closed since it was read; nil when
// it does neither.
func (s *State) closing() Effect {
	switch at := s.Facts.Brakes.ClosesAt; {
	case at.IsZero():
		return nil
	case !s.Now.Before(at):
		return Look{} // it was open when they were read, and answers took their time
	case !s.Now.Add(sendMargin).Before(at):
		return Wait{Until: at, Why: "the window closes before a write would surely be stored"}
	}
	return nil
}

// waits says in the status what the plan waits for, and waits. One that has
// begun stays Running.
func (s *State) waits(d deferral) Effect {
	phase, why, until := s.deferred(d)
	if !s.told(d) {
		return s.write(func(n *v1alpha1.RemediationPlanStatus) {
			n.Phase, n.DeferralReason, n.ResumeTime = phase, why, nil
			if !until.IsZero() {
				at := metav1.NewTime(until.Truncate(time.Second))
				n.ResumeTime = &at
			}
		})
	}
	return Wait{Until: until, Why: why}
}

// deferred is a deferral as the status tells of it.
func (s *State) deferred(d deferral) (phase v1alpha1.PlanPhase, why string, until time.Time) {
	if s.Plan.Status.StartTime != nil {
		d.phase = v1alpha1.PlanRunning
	}
	return d.phase, diff.TruncateText(d.why, MaxMessage), d.until
}

// retell is how far the time of a deferral may move on before the status tells the later time:
// a deferral that ends as soon as others are healthy has a new time at each look.
const retell = time.Minute

// told says that the status tells of a deferral already.
func (s *State) told(d deferral) bool {
	status := &s.Plan.Status
	phase, why, until := s.deferred(d)
	return status.ObservedGeneration == s.Plan.Generation && status.Phase == phase && status.DeferralReason == why && toldTime(status.ResumeTime, until)
}

// toldTime says that a stored time tells of a time well enough: the time has not moved, or a
// little later.
func toldTime(stored *metav1.Time, t time.Time) bool {
	if stored == nil || t.IsZero() {
		return stored == nil && t.IsZero()
	}
	later := t.Truncate(time.Second).Sub(stored.Time)
	return later >= 0 && later < retell
}

// unfit ends a step that the plan may not write any more; nil when the plan may.
func (s *State) unfit(step *v1alpha1.PlanStep) Effect {
	if e := s.tooOld(step); e != nil {
		return e
	}
	return s.tooMany(step)
}

// tooOld ends a step whose drift has become older than the policy puts back by itself; nil
// when the drift has not, or a person has asked for the plan.
func (s *State) tooOld(step *v1alpha1.PlanStep) Effect {
	oldest, since := s.Facts.Brakes.MaximumDriftAge, s.target(step).FirstSeenTime.Time
	switch {
	case oldest == 0 || s.asked():
		return nil
	case since.IsZero():
		return s.skip(step, v1alpha1.ReasonAboveMaximumAge, "the age of the drift is unknown, and may be more than %s: a person has to decide", oldest)
	case s.Now.Sub(since) <= oldest:
		return nil
	}
	return s.skip(step, v1alpha1.ReasonAboveMaximumAge, "the drift is older than %s: a person has to decide", oldest)
}

// tooMany ends a step when the other steps take as many targets as one operation may have;
// nil while there is room.
func (s *State) tooMany(step *v1alpha1.PlanStep) Effect {
	most := s.Facts.Brakes.MaximumTargets
	if most == 0 {
		return nil
	}
	taken := 0
	for i := range s.Plan.Status.Steps {
		if other := &s.Plan.Status.Steps[i]; other.Index != step.Index && takesRoom(other) {
			taken++
		}
	}
	if taken < most {
		return nil
	}
	return s.skip(step, v1alpha1.ReasonBlastRadius, "one operation has at most %s, and %s of this plan %s begun",
		plural.Of(most, "target"), plural.Of(taken, "step"), plural.Verb(taken, "has", "have"))
}

// takesRoom says that a step counts for the limit of targets: the step has begun, and is not
// known to have written nothing.
func takesRoom(step *v1alpha1.PlanStep) bool {
	switch step.State {
	case v1alpha1.StepPlanned, v1alpha1.StepSkipped, v1alpha1.StepFenced:
		return false
	case v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied, v1alpha1.StepVerified, v1alpha1.StepFailed:
	}
	return true
}
