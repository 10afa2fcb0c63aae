// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// inOrder: I18. A step is granted, or gets its first intent, only when all batches before have
// ended, their pause is over, and no step has failed.
func (j *judge) inOrder(c apiserver.Commit, before, next *v1alpha1.RemediationPlan) {
	for i := range next.Status.Steps {
		was, is := stateOf(before, i), next.Status.Steps[i].State
		granted := is == v1alpha1.StepReserved && was == v1alpha1.StepPlanned
		if !granted && (is != v1alpha1.StepIntent || !unbegan(was)) {
			continue
		}
		if failed := slices.IndexFunc(before.Status.Steps, func(s v1alpha1.PlanStep) bool { return s.State == v1alpha1.StepFailed }); failed >= 0 {
			j.breaks("I18", c.Revision, "step %d of %s is %s, and step %d has failed", i, next.Name, is, failed)
		}
		j.afterBatches(c, before, next, int32(i)) //nolint:gosec // few
	}
}

func (j *judge) afterBatches(c apiserver.Commit, before, next *v1alpha1.RemediationPlan, step int32) {
	for _, b := range next.Spec.Plan.Batches {
		if slices.Contains(b.Steps, step) {
			return
		}
		for _, earlier := range b.Steps {
			done := &before.Status.Steps[earlier]
			if done.CompletionTime == nil {
				j.breaks("I18", c.Revision, "step %d of %s goes on, and step %d of a batch before has not ended", step, next.Name, earlier)
				continue
			}
			if b.DelayAfter == nil {
				continue
			}
			j.seen["step after a pause between batches"]++
			if until := done.CompletionTime.Add(b.DelayAfter.Duration - tolerance); c.At.Before(until) {
				j.breaks("I18", c.Revision, "step %d of %s goes on, and the batch before ended at %s, with a pause of %s", step, next.Name, done.CompletionTime, b.DelayAfter.Duration)
			}
		}
	}
}

// healthyLongEnough: I22, for steps of plans that nobody ends.
func (j *judge) healthyLongEnough(c apiserver.Commit, before, next *v1alpha1.RemediationPlan) {
	if before.Status.Phase != v1alpha1.PlanRunning || next.Status.Phase != v1alpha1.PlanRunning || len(j.permits.health) == 0 {
		return
	}
	least := slices.Min(j.permits.health)
	for i := range next.Status.Steps {
		if stateOf(before, i) != v1alpha1.StepApplied || next.Status.Steps[i].State != v1alpha1.StepVerified {
			continue
		}
		if least > 10*time.Second {
			j.seen["verified after a long stabilization"]++
		}
		if j.outlasted(next, i) {
			continue
		}
		since := before.Status.Steps[i].HealthyTime
		if since == nil || c.At.Before(since.Add(least-tolerance)) {
			j.breaks("I22", c.Revision, "step %d of %s is verified, and healthy since %v; the policy asks for %s", i, next.Name, since, least)
		}
	}
}

// outlasted says that the step of a quarantine ends because its quarantine has ended before.
func (j *judge) outlasted(p *v1alpha1.RemediationPlan, step int) bool {
	t := &p.Spec.Plan.Targets[step]
	b := j.permits.baselines[t.BaselineName]
	return t.Action == v1alpha1.ActionQuarantine && b != nil && b.Status.EndedQuarantine != nil &&
		b.Status.EndedQuarantine.Token == protocol.Token(p, int32(step)) //nolint:gosec // few
}

// leads: I19. Between the grant of a step and its write the webhook did the same all the time,
// so the write leads where its dry run led.
func (j *judge) leads(e effect) {
	planned := &e.plan.Spec.Plan.Targets[e.step]
	if e.After == nil {
		return
	}
	if j.w.hashOf(j.w.target(e.Name), specOf(e.After)) == planned.DesiredHash {
		return
	}
	started := e.status().StartTime
	if started == nil || slices.ContainsFunc(j.w.turns, func(at time.Time) bool { return !at.Before(started.Time) && !at.After(e.At) }) {
		j.seen["write that a webhook changed after its dry run"]++
		return
	}
	j.breaks("I19", e.Revision, "step %d of %s leads to what the plan does not name, and the webhook did the same since %s", e.step, e.plan.Name, started)
}

// brakeHolds is how long a brake may take: an executor may stand still for some minutes, die,
// and be started again, and messages may be lost.
const brakeHolds = 15 * time.Minute

// brakes: L5. A plan that a person pauses, cancels or halts writes nothing for long.
func (j *judge) brakes(c apiserver.Commit) {
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		if j.deleted[name] || !j.braked(p) || holds(p.Status.Phase) {
			delete(j.brakedSince, name)
			continue
		}
		since, known := j.brakedSince[name]
		switch {
		case !known:
			j.brakedSince[name] = c.At
		case c.At.Sub(since) > brakeHolds:
			j.breaks("L5", c.Revision, "plan %s is %s %s after a person braked it", name, p.Status.Phase, c.At.Sub(since))
			j.brakedSince[name] = c.At
		}
	}
}

// braked says that a person has braked a plan. A brake counts while the executors can read it.
func (j *judge) braked(p *v1alpha1.RemediationPlan) bool {
	verb := p.Spec.Control.Verb
	if verb == v1alpha1.PlanCancel || verb == v1alpha1.PlanPause {
		return true
	}
	if j.w.counts["kind that cannot be read"] > 0 {
		return false
	}
	policy := j.permits.policy
	return j.halted() || policy != nil && policy.Spec.Mode != v1alpha1.PolicyModeActive
}

// holds says that a plan of a phase writes nothing more.
func holds(phase v1alpha1.PlanPhase) bool {
	switch phase {
	case v1alpha1.PlanCreated, v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanRunning, "":
		return false
	case v1alpha1.PlanPaused, v1alpha1.PlanSealing, v1alpha1.PlanCanceled, v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess,
		v1alpha1.PlanFailed, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped:
	}
	return true
}
