// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// once: I1, and I10 for what is made.
func (j *judge) once(e effect) {
	for _, before := range j.effects {
		if before.plan.UID == e.plan.UID && before.step == e.step {
			j.breaks("I1", e.Revision, "step %d of %s was written at revision %d already", e.step, e.plan.Name, before.Revision)
		}
	}
	if e.Before == nil && e.plan.Spec.Plan.Targets[e.step].UID != "" {
		j.breaks("I10", e.Revision, "%s was made, and was not to be made again", e.Name)
	}
}

func (e effect) status() *v1alpha1.PlanStep { return &e.plan.Status.Steps[e.step] }

// intended: I2.
func (j *judge) intended(e effect) {
	step := e.status()
	switch {
	case step.Intent == nil:
		j.breaks("I2", e.Revision, "step %d of %s is %s, without an intent", e.step, e.plan.Name, step.State)
	case step.Intent.Epoch > e.plan.Status.Epoch:
		j.breaks("I2", e.Revision, "the intent is of epoch %d, the plan of %d", step.Intent.Epoch, e.plan.Status.Epoch)
	case step.State != v1alpha1.StepIntent && step.State != v1alpha1.StepApplied:
		j.breaks("I5", e.Revision, "step %d of %s is %s %s", e.step, e.plan.Name, step.State, step.Reason)
	}
}

// overwrites: I3. The content is compared itself, not by the hash that the
// executor goes by.
func (j *judge) overwrites(e effect) {
	intent, planned := e.status().Intent, &e.plan.Spec.Plan.Targets[e.step]
	if intent == nil || e.Before == nil {
		return
	}
	if uid := metadata(e.Before)["uid"]; uid != intent.UID || uid != planned.UID {
		j.breaks("I3", e.Revision, "it overwrites the object %v; the intent names %s, the plan %s", uid, intent.UID, planned.UID)
	}
	if hash := j.w.hashOf(j.w.target(e.Name), specOf(e.Before)); hash != intent.PreHash || hash != planned.DriftedHash {
		j.breaks("I3", e.Revision, "it overwrites content %s; the intent names %s, the plan %s", hash, intent.PreHash, planned.DriftedHash)
	}
}

// networkHolds is how long a request is under way while its sender still waits for
// it. One that arrives later was held by the network.
const networkHolds = 10 * time.Second

// tolerance is by how much a clock may be wrong.
const tolerance = 5 * time.Second

// inHours: I16. What the network held counts by when it was sent: no process can
// call it back, and only a fence, which is a write itself, would stop it.
func (j *judge) inHours(e effect) {
	hours := j.w.hours
	if hours == nil || j.asked[e.plan.Name] {
		return
	}
	at := e.At
	if e.At.Sub(e.Sent) > networkHolds {
		at = e.Sent
	}
	if !hours.open(at.Sub(j.w.midnight), tolerance) {
		j.breaks("I16", e.Revision, "step %d of %s was sent %s and stored %s after midnight; %s", e.step, e.plan.Name, e.Sent.Sub(j.w.midnight), e.At.Sub(j.w.midnight), hours)
		return
	}
	j.seen["effect within hours"]++
	if !hours.open(e.At.Sub(j.w.midnight), tolerance) {
		j.seen["effect outside of its hours, held by the network"]++
	}
}

// within: I4 for what is counted by effects.
func (j *judge) within(e effect) {
	safety := j.loosest()
	limits := exec.PolicyLimits(&safety)
	if most := j.w.caps.PerHour; most != nil {
		limits.PerHour = new(min(*limits.PerHour, *most))
	}
	hour, day := 1, 1
	for _, before := range j.effects {
		if e.At.Sub(before.At) < time.Hour {
			hour++
		}
		if e.At.Sub(before.At) < 24*time.Hour {
			day++
		}
		if gap := e.At.Sub(before.At); gap < limits.Cooldown && *limits.Concurrent == 1 {
			j.breaks("I4", e.Revision, "%s after the effect before, with a cooldown of %s", gap, limits.Cooldown)
		}
	}
	if hour > int(*limits.PerHour) {
		j.breaks("I4", e.Revision, "%d effects within an hour, with a limit of %d", hour, *limits.PerHour)
	}
	if day > int(*limits.PerDay) {
		j.breaks("I4", e.Revision, "%d effects within a day, with a limit of %d", day, *limits.PerDay)
	}
}

// notEnded: I5.
func (j *judge) notEnded(e effect) {
	phase := e.plan.Status.Phase
	switch {
	case protocol.Final(phase) || phase == v1alpha1.PlanPaused:
		j.breaks("I5", e.Revision, "plan %s is %s", e.plan.Name, phase)
	case j.erased[string(e.plan.UID)]:
		j.seen["effect of a plan that is gone"]++
	}
}

// granted: I11 and I8. Both ledgers have the step, and it has not ended there.
func (j *judge) granted(e effect) {
	for _, name := range ledgerNames {
		l := j.ledgers[name]
		if l == nil {
			j.seen["effect without a ledger"]++ // somebody removed it meanwhile
			continue
		}
		entry := entryOf(l, e.plan, e.step)
		if entry == nil || entry.CompletionTime != nil {
			if j.deleted["ledger "+name] {
				j.seen["effect without a ledger"]++
				continue
			}
			if entry != nil && entry.Outcome == v1alpha1.LedgerFailed && j.erased[string(e.plan.UID)] {
				j.seen["effect that was counted when its plan was gone"]++
				continue
			}
			j.breaks("I11", e.Revision, "ledger %s has not granted step %d of %s", name, e.step, e.plan.Name)
			continue
		}
		for i := range l.Status.Breakers {
			b := &l.Status.Breakers[i]
			open := b.State != v1alpha1.BreakerClosed && b.LastOpenTime != nil && entry.ReservationTime.After(b.LastOpenTime.Time)
			probe := b.Probe != nil && b.Probe.PlanUID == string(e.plan.UID) && b.Probe.Step == e.step
			if open && !probe {
				j.breaks("I8", e.Revision, "the breaker is %s, and step %d of %s was granted after it opened", b.State, e.step, e.plan.Name)
			}
		}
	}
}

func entryOf(l *v1alpha1.RemediationLedger, plan *v1alpha1.RemediationPlan, step int32) *v1alpha1.LedgerEntry {
	for i := range l.Status.Entries {
		entry := &l.Status.Entries[i]
		if entry.PlanUID == string(plan.UID) && entry.Step == step {
			return entry
		}
	}
	return nil
}
