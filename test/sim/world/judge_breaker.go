// SPDX-License-Identifier: Apache-2.0

package world

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// counted: I20. What a ledger says of a step is how the step ended, and the breaker of its
// policy counts it.
func (j *judge) counted(c apiserver.Commit, before, next *v1alpha1.RemediationLedger) {
	for i := range before.Status.Entries {
		was := &before.Status.Entries[i]
		is := find(next, was)
		switch {
		case was.CompletionTime != nil:
		case is == nil:
			j.givenBack(c, was)
		case is.CompletionTime != nil:
			j.seen["place that ended as "+string(is.Outcome)]++
			j.outcome(c, is)
			if c.Name == environment {
				j.breaker(c, before, next, is)
			}
		}
	}
}

// stepOf is the step of an entry; nil when its plan is gone, or another one has its name.
func (j *judge) stepOf(e *v1alpha1.LedgerEntry) *v1alpha1.PlanStep {
	p := j.plans[e.PlanName]
	if p == nil || j.deleted[e.PlanName] || string(p.UID) != e.PlanUID || int(e.Step) >= len(p.Status.Steps) {
		return nil
	}
	return &p.Status.Steps[e.Step]
}

// givenBack says that a step that wrote, or may yet write, keeps its place.
func (j *judge) givenBack(c apiserver.Commit, e *v1alpha1.LedgerEntry) {
	j.seen["place that was given back"]++
	step := j.stepOf(e)
	if step == nil {
		return
	}
	switch step.State {
	case v1alpha1.StepPlanned, v1alpha1.StepSkipped, v1alpha1.StepFenced:
	case v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied, v1alpha1.StepVerified, v1alpha1.StepFailed:
		j.breaks("I20", c.Revision, "ledger %s gives the place of step %d of %s back, which is %s", c.Name, e.Step, e.PlanName, step.State)
	}
}

// outcome says that an entry ends as its step did.
func (j *judge) outcome(c apiserver.Commit, e *v1alpha1.LedgerEntry) {
	step, want := j.stepOf(e), v1alpha1.LedgerFailed
	if step == nil {
		return
	}
	switch {
	case step.State == v1alpha1.StepVerified:
		want = v1alpha1.LedgerSucceeded
	case step.State == v1alpha1.StepFailed && step.Reason == v1alpha1.ReasonStopped:
		want = v1alpha1.LedgerStopped
	case step.State != v1alpha1.StepFailed:
		want = ""
	}
	if e.Outcome != want {
		j.breaks("I20", c.Revision, "ledger %s counts step %d of %s as %s, and the step is %s %s", c.Name, e.Step, e.PlanName, e.Outcome, step.State, step.Reason)
	}
}

// breaker counts by itself what the breaker of a ledger has to count.
func (j *judge) breaker(c apiserver.Commit, before, next *v1alpha1.RemediationLedger, e *v1alpha1.LedgerEntry) {
	was, is := breakerOf(before, e.PolicyUID), breakerOf(next, e.PolicyUID)
	probe := was.Probe != nil && *was.Probe == e.StepReference
	wrong := func(what string) {
		j.breaks("I20", c.Revision, "step %d of %s ended as %s: %s; the breaker went from %+v to %+v", e.Step, e.PlanName, e.Outcome, what, was, is)
	}
	switch e.Outcome {
	case v1alpha1.LedgerSucceeded:
		if why := unturned(was, is, probe, e.VerdictTimeoutSeconds != 0); why != "" {
			wrong(why)
		}
	case v1alpha1.LedgerStopped:
		if is.Failures != was.Failures {
			wrong("what a person stopped is no failure")
		}
	case v1alpha1.LedgerFailed:
		if why := miscounted(was, is, probe, e.FailureThreshold); why != "" {
			wrong(why)
		} else if is.State == v1alpha1.BreakerOpen && was.State == v1alpha1.BreakerClosed {
			j.seen["breaker that opens"]++
		}
	}
}

// unturned says what is wrong with a breaker after a success; empty when nothing is.
func unturned(was, is v1alpha1.LedgerBreaker, probe, assessed bool) string {
	switch {
	case assessed && (is.Failures != was.Failures || is.State != was.State || probe && is.VerdictDeadlineTime == nil):
		return "a success that is to be assessed turns no breaker"
	case !assessed && (probe || was.State == v1alpha1.BreakerClosed) && (is.Failures != 0 || is.State != v1alpha1.BreakerClosed):
		return "a success closes the breaker"
	}
	return ""
}

// miscounted says what is wrong with a breaker after a failure; empty when nothing is.
func miscounted(was, is v1alpha1.LedgerBreaker, probe bool, threshold int32) string {
	switch opens := probe || threshold > 0 && is.Failures >= threshold; {
	case is.Failures != was.Failures+1:
		return "a failure counts"
	case opens && is.State != v1alpha1.BreakerOpen:
		return "that failure opens the breaker"
	}
	return ""
}

// breakerOf is the breaker of a policy; one that nothing was told of is closed.
func breakerOf(l *v1alpha1.RemediationLedger, policyUID string) v1alpha1.LedgerBreaker {
	for _, b := range l.Status.Breakers {
		if b.PolicyUID == policyUID {
			return b
		}
	}
	return v1alpha1.LedgerBreaker{PolicyUID: policyUID, State: v1alpha1.BreakerClosed}
}
