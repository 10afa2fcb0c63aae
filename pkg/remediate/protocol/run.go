// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// run carries a plan on that nobody has ended or paused.
func (s *State) run() Effect {
	if e := s.interrupt(); e != nil {
		return e
	}
	e, waits := s.underWay()
	if e != nil {
		return e
	}
	e = s.more()
	if wait, ok := e.(Wait); ok && waits != nil {
		return sooner(*waits, wait)
	}
	return e
}

// more is what there is to do beside the steps that are under way.
func (s *State) more() Effect {
	if e := s.tidy(); e != nil {
		return e
	}
	batch, done := s.batch()
	if done {
		return s.finish()
	}
	if s.unwritten() {
		if e := s.begins(batch); e != nil {
			return e
		}
	}
	return s.first(batch)
}

// unwritten says that there are steps that have written nothing yet.
func (s *State) unwritten() bool {
	return slices.ContainsFunc(s.Plan.Status.Steps, func(step v1alpha1.PlanStep) bool {
		return step.State == v1alpha1.StepPlanned || step.State == v1alpha1.StepReserved
	})
}

// interrupt turns to the end, or to a pause, when that is asked for.
func (s *State) interrupt() Effect {
	control, brakes := s.Plan.Spec.Control, s.Facts.Brakes
	switch {
	case control.Verb == v1alpha1.PlanCancel:
		return s.sealing(v1alpha1.PlanCanceled, control.RequestedBy, control.Reason)
	case brakes.Known && brakes.Halted != "":
		return s.sealing(v1alpha1.PlanCanceled, brakes.HaltedBy, brakes.Halted)
	case control.Verb == v1alpha1.PlanPause:
		return s.sealing(v1alpha1.PlanPaused, control.RequestedBy, control.Reason)
	case brakes.Known && brakes.Superseded != "" && s.Plan.Status.StartTime == nil:
		return s.sealing(v1alpha1.PlanSuperseded, "", brakes.Superseded)
	}
	return nil
}

func (s *State) sealing(as v1alpha1.PlanPhase, by, why string) Effect {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		n.Phase, n.EndingAs, n.EndedBy, n.EndedReason = v1alpha1.PlanSealing, as, by, diff.TruncateText(why, MaxMessage)
		n.DeferralReason, n.ResumeTime = "", nil
	})
}

// underWay goes on with the steps that may have written, whatever else holds the
// plan back: to leave them in the open helps nobody. It returns what to do, or
// how long they all wait; neither when there are none.
func (s *State) underWay() (Effect, *Wait) {
	var waits *Wait
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		if step.State != v1alpha1.StepIntent && step.State != v1alpha1.StepApplied {
			continue
		}
		e := s.step(step)
		wait, ok := e.(Wait)
		if !ok {
			return e, nil
		}
		waits = soonest(waits, wait)
	}
	return nil, waits
}

// soonest is the first wait, or the one that ends before it.
func soonest(a *Wait, b Wait) *Wait {
	if a != nil {
		b = sooner(*a, b)
	}
	return &b
}

// sooner is the wait that ends first; one without an end is the later one.
func sooner(a, b Wait) Wait {
	if a.Until.IsZero() || !b.Until.IsZero() && b.Until.Before(a.Until) {
		return b
	}
	return a
}

// tidy does what follows the end of a step: the ledgers, the record, the claim.
func (s *State) tidy() Effect {
	for i := range s.Plan.Status.Steps {
		step := &s.Plan.Status.Steps[i]
		if !ended(step) {
			continue
		}
		if e := s.after(step); e != nil {
			return e
		}
	}
	return nil
}

// batch is the first one with a step that has not ended.
func (s *State) batch() (v1alpha1.PlanBatch, bool) {
	for _, b := range s.Plan.Spec.Plan.Batches {
		for _, i := range b.Steps {
			if !ended(&s.Plan.Status.Steps[i]) {
				return b, false
			}
		}
	}
	return v1alpha1.PlanBatch{}, true
}

// begins says what keeps a batch from beginning, or nil.
func (s *State) begins(batch v1alpha1.PlanBatch) Effect {
	if s.failed() {
		return s.stop(v1alpha1.ReasonStopped, "an earlier step failed")
	}
	if !s.Now.Before(s.Plan.Spec.Plan.DeadlineTime.Time) {
		return s.stop(v1alpha1.ReasonDeadlineExceeded, "the plan's time is over")
	}
	if b := s.Facts.Brakes; b.Known && b.Superseded != "" {
		return s.stop(v1alpha1.ReasonPolicyChanged, b.Superseded)
	}
	if until, ok := s.delay(batch); ok {
		return Wait{Until: until, Why: "delayAfter the batch before"}
	}
	return nil
}

// failed says that a step failed: nothing more begins.
func (s *State) failed() bool {
	for i := range s.Plan.Status.Steps {
		if s.Plan.Status.Steps[i].State == v1alpha1.StepFailed {
			return true
		}
	}
	return false
}

// stop ends the steps that have written nothing.
func (s *State) stop(why v1alpha1.StepReason, message string) Effect {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) { skipTheRest(n, why, message, s.at()) })
}

func skipTheRest(n *v1alpha1.RemediationPlanStatus, why v1alpha1.StepReason, message string, at *metav1.Time) {
	for i := range n.Steps {
		step := &n.Steps[i]
		if step.State == v1alpha1.StepPlanned || step.State == v1alpha1.StepReserved {
			end(step, v1alpha1.StepSkipped, why, message, at)
		}
	}
}

// end ends a step.
func end(step *v1alpha1.PlanStep, as v1alpha1.StepState, why v1alpha1.StepReason, message string, at *metav1.Time) {
	step.State, step.Reason, step.Message, step.CompletionTime = as, why, diff.TruncateText(message, MaxMessage), at
	note(step, strings.TrimSpace(string(as)+" "+string(why))+": "+message, at)
}

// The schema's bounds, in characters; here they count bytes, which are more. A
// status with a longer text would be refused, and the plan stand still for ever.
const (
	// MaxMessage bounds why a step ended, and what a plan waits for, in bytes.
	MaxMessage = 512
	// maxLine bounds one line of what happened to a step, maxLogs how many of them
	// are kept, the newest ones.
	maxLine = 256
	maxLogs = 16
)

// note adds a line to what happened.
func note(step *v1alpha1.PlanStep, line string, at *metav1.Time) {
	step.Logs = append(step.Logs, diff.TruncateText(at.UTC().Format(time.RFC3339)+" "+line, maxLine))
	step.Logs = step.Logs[max(0, len(step.Logs)-maxLogs):]
}

// delay is until when a batch waits for the one before it.
func (s *State) delay(batch v1alpha1.PlanBatch) (time.Time, bool) {
	if batch.Order == 0 {
		return time.Time{}, false
	}
	before := s.Plan.Spec.Plan.Batches[batch.Order-1]
	if before.DelayAfter == nil {
		return time.Time{}, false
	}
	var last time.Time
	for _, i := range before.Steps {
		if at := s.Plan.Status.Steps[i].CompletionTime; at != nil && at.After(last) {
			last = at.Time
		}
	}
	until := last.Add(before.DelayAfter.Duration)
	return until, until.After(s.Now)
}

// first is what the first step of a batch does that has something to do, and that nothing
// holds back. What holds the others back is said when all others have ended or wait.
func (s *State) first(batch v1alpha1.PlanBatch) Effect {
	var waits *Wait
	var deferred *deferral
	for _, i := range batch.Steps {
		step := &s.Plan.Status.Steps[i]
		if ended(step) {
			continue
		}
		e, d := s.proceed(step)
		if d != nil && deferred == nil {
			deferred = d
		}
		switch wait, ok := e.(Wait); {
		case ok:
			waits = soonest(waits, wait)
		case e != nil:
			return e
		}
	}
	if deferred != nil {
		e := s.waits(*deferred)
		wait, ok := e.(Wait)
		if !ok {
			return e
		}
		waits = soonest(waits, wait)
	}
	if waits == nil {
		return Wait{Why: "no target is left in this batch"}
	}
	return *waits
}

// proceed is what a step does that has not ended, or what it waits for. A step that is
// deferred before it has written holds neither a place nor its target.
func (s *State) proceed(step *v1alpha1.PlanStep) (Effect, *deferral) {
	if step.State != v1alpha1.StepPlanned && step.State != v1alpha1.StepReserved {
		return s.step(step), nil
	}
	e, deferred := s.checkBrakes(step)
	switch {
	case deferred != nil:
		return s.yieldFor(step, deferred)
	case e != nil:
		return e, nil
	}
	return s.step(step), nil
}

// finish says how a plan ended of which every step has.
func (s *State) finish() Effect {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		s.complete(n)
	})
}

// End returns the status with which a plan is about to end: each step has ended, and no person and
// no brake has ended the plan. It is nil otherwise. What follows the ends of the steps, such as
// telling the ledgers, may still be to be done.
func End(s *State) *v1alpha1.RemediationPlanStatus {
	if s.Plan.Status.Phase != v1alpha1.PlanRunning || s.Facts.Brakes == nil || s.interrupt() != nil {
		return nil
	}
	if _, done := s.batch(); !done {
		return nil
	}
	end := s.Plan.Status.DeepCopy()
	s.complete(end)
	return end
}

func (s *State) complete(n *v1alpha1.RemediationPlanStatus) {
	count(n)
	s.ends(n, outcome(n))
	n.DeferralReason, n.ResumeTime = "", nil
}

// outcome returns the phase of a plan of which every step has ended, and which no person
// and no brake has ended. A plan whose targets all moved away failed nothing: what it was
// made for is no longer so. A plan that something kept from its targets tells that.
func outcome(n *v1alpha1.RemediationPlanStatus) v1alpha1.PlanPhase {
	switch c := n.Counts; {
	case c.Succeeded == c.Total:
		return v1alpha1.PlanSucceeded
	case c.Succeeded > 0:
		return v1alpha1.PlanPartialSuccess
	case c.Failed > 0:
		return v1alpha1.PlanFailed
	}
	for i := range n.Steps {
		if Hindered(&n.Steps[i]) {
			return v1alpha1.PlanSkipped
		}
	}
	return v1alpha1.PlanSuperseded
}

// Hindered says that a step wrote nothing although its target was still to be put back:
// a person has to remove what kept the step from its target.
func Hindered(step *v1alpha1.PlanStep) bool {
	if step.State != v1alpha1.StepSkipped && step.State != v1alpha1.StepFenced {
		return false
	}
	switch step.Reason {
	case v1alpha1.ReasonTargetMoved, v1alpha1.ReasonTargetReplaced, v1alpha1.ReasonAlreadyDesired, v1alpha1.ReasonTerminating,
		v1alpha1.ReasonClaimed, v1alpha1.ReasonStopped, v1alpha1.ReasonPolicyChanged, v1alpha1.ReasonBlastRadius, v1alpha1.ReasonBelowSeverity:
		return false
	case v1alpha1.ReasonTargetContended, v1alpha1.ReasonWouldNotConverge, v1alpha1.ReasonNotAllowed, v1alpha1.ReasonRevisionDamaged,
		v1alpha1.ReasonUnhealthy, v1alpha1.ReasonRefused, v1alpha1.ReasonDeadlineExceeded, v1alpha1.ReasonAboveMaximumAge,
		v1alpha1.ReasonNoStandby:
	}
	return true
}
