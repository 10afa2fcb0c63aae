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
		return s.sealing(v1alpha1.PlanCancelled, control.RequestedBy, control.Reason)
	case brakes.Known && brakes.Halted != "":
		return s.sealing(v1alpha1.PlanCancelled, brakes.HaltedBy, brakes.Halted)
	case control.Verb == v1alpha1.PlanPause:
		return s.sealing(v1alpha1.PlanPaused, control.RequestedBy, control.Reason)
	case brakes.Known && brakes.Superseded != "" && s.Plan.Status.StartedAt == nil:
		return s.sealing(v1alpha1.PlanSuperseded, "", brakes.Superseded)
	}
	return nil
}

func (s *State) sealing(as v1alpha1.PlanPhase, by, why string) Effect {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		n.Phase, n.EndingAs, n.EndedBy, n.EndedReason = v1alpha1.PlanSealing, as, by, diff.TruncateText(why, MaxMessage)
		n.DeferralReason, n.DeferredUntil = "", nil
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
	if !s.Now.Before(s.Plan.Spec.Plan.Deadline.Time) {
		return s.stop(v1alpha1.ReasonDeadlineExceeded, "the plan's time is over")
	}
	if until, ok := s.delay(batch); ok {
		return Wait{Until: until, Why: "delayAfter the batch before"}
	}
	return s.held()
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
	step.State, step.Reason, step.Message, step.FinishedAt = as, why, diff.TruncateText(message, MaxMessage), at
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
		if at := s.Plan.Status.Steps[i].FinishedAt; at != nil && at.After(last) {
			last = at.Time
		}
	}
	until := last.Add(before.DelayAfter.Duration)
	return until, until.After(s.Now)
}

// held says what else keeps a step from beginning: the time, a person who is to
// say so, a brake.
func (s *State) held() Effect {
	plan, brakes, control := &s.Plan.Spec.Plan, s.Facts.Brakes, s.Plan.Spec.Control
	asked := control.Verb == v1alpha1.PlanExecute
	switch {
	case !brakes.Known:
		return s.wait(again, "what may hold it back could not be read")
	case asked:
	case !brakes.ClosesAt.IsZero() && !s.Now.Before(brakes.ClosesAt):
		return Look{} // it was open when they were read, and answers took their time
	case plan.Trigger == v1alpha1.TriggerManual && s.Plan.Status.StartedAt == nil:
		return s.waits(v1alpha1.PlanDeferred, "it waits for somebody to execute it", time.Time{})
	case plan.ScheduledFor != nil && s.Now.Before(plan.ScheduledFor.Time):
		return s.waits(v1alpha1.PlanScheduled, "it is scheduled", plan.ScheduledFor.Time)
	}
	if brakes.Closed != "" && (!asked || !brakes.OutsideSchedule) {
		return s.waits(v1alpha1.PlanDeferred, brakes.Closed, brakes.Until)
	}
	return nil
}

// waits says in the status what the plan waits for, and waits. One that has
// begun stays Running.
func (s *State) waits(phase v1alpha1.PlanPhase, why string, until time.Time) Effect {
	status, why := &s.Plan.Status, diff.TruncateText(why, MaxMessage)
	if status.StartedAt != nil {
		phase = v1alpha1.PlanRunning
	}
	told := status.ObservedGeneration == s.Plan.Generation && status.Phase == phase && status.DeferralReason == why && sameTime(status.DeferredUntil, until)
	if !told {
		return s.write(func(n *v1alpha1.RemediationPlanStatus) {
			n.Phase, n.DeferralReason, n.DeferredUntil = phase, why, nil
			if !until.IsZero() {
				at := metav1.NewTime(until.Truncate(time.Second))
				n.DeferredUntil = &at
			}
		})
	}
	return Wait{Until: until, Why: why}
}

func sameTime(stored *metav1.Time, t time.Time) bool {
	if stored == nil {
		return t.IsZero()
	}
	return stored.Time.Equal(t.Truncate(time.Second))
}

// first is what the first step of a batch does that has something to do.
func (s *State) first(batch v1alpha1.PlanBatch) Effect {
	var waits *Wait
	for _, i := range batch.Steps {
		step := &s.Plan.Status.Steps[i]
		if ended(step) {
			continue
		}
		e := s.step(step)
		wait, ok := e.(Wait)
		if !ok {
			return e
		}
		waits = soonest(waits, wait)
	}
	if waits == nil {
		return Wait{Why: "nothing is left to do in this batch"}
	}
	return *waits
}

// finish says how a plan ended of which every step has.
func (s *State) finish() Effect {
	return s.write(func(n *v1alpha1.RemediationPlanStatus) {
		count(n)
		n.Phase, n.CompletedAt = outcome(n.Counts), s.at()
		n.DeferralReason, n.DeferredUntil = "", nil
	})
}

// outcome of a plan that was not ended by anybody. One whose targets all moved
// away failed nothing: what it was made for is no longer so.
func outcome(c v1alpha1.PlanCounts) v1alpha1.PlanPhase {
	switch {
	case c.Succeeded == c.Total:
		return v1alpha1.PlanSucceeded
	case c.Succeeded > 0:
		return v1alpha1.PlanPartialSuccess
	case c.Failed > 0:
		return v1alpha1.PlanFailed
	}
	return v1alpha1.PlanSuperseded
}
