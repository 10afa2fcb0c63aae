// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// plan looks at a write of a plan: I6, I7, I12, and what of I4 is about steps.
func (j *judge) plan(c apiserver.Commit) {
	if c.After == nil {
		j.deleted[c.Name] = true
		j.erased[fmt.Sprint(metadata(c.Before)["uid"])] = true
		return
	}
	next, before := typedOf[v1alpha1.RemediationPlan](j.w, c.After), j.plans[c.Name]
	if c.Before == nil && before != nil { // it was deleted, and is made again
		before = nil
		delete(j.deleted, c.Name)
		delete(j.finalAt, c.Name)
		delete(j.asked, c.Name)
	}
	j.plans[c.Name] = next
	j.asked[c.Name] = j.asked[c.Name] || next.Spec.Control.Verb == v1alpha1.PlanExecute
	j.had(next)
	if j.finalAt[c.Name] == 0 && protocol.Final(next.Status.Phase) {
		j.finalAt[c.Name] = c.Revision
	}
	if before == nil {
		j.planned(c, next)
	}
	if before == nil || c.Subresource != "status" {
		return
	}
	j.epochs(c, &before.Status, &next.Status)
	j.forward(c, &before.Status, &next.Status)
	j.noted(c, &before.Status, &next.Status)
	j.names(c, &before.Status, &next.Status)
	j.alone(c, next)
	j.concurrent(c)
	j.permitted(c, before, next)
	j.tookOver(before, next)
	j.inOrder(c, before, next)
	j.healthyLongEnough(c, before, next)
	j.yields(c, before, next)
}

func (j *judge) had(p *v1alpha1.RemediationPlan) {
	if j.phases[string(p.UID)] == nil {
		j.phases[string(p.UID)] = map[string]bool{}
	}
	j.phases[string(p.UID)][string(p.Status.Phase)] = true
}

// epochs: I6.
func (j *judge) epochs(c apiserver.Commit, before, next *v1alpha1.RemediationPlanStatus) {
	switch {
	case next.Holder == "" && next.Epoch == 0 && next.Phase == "":
		// Nobody holds it yet: it says why not.
		j.seen["plan that cannot begin"]++
	case next.Holder != c.Client:
		j.breaks("I6", c.Revision, "%s wrote the plan that %s holds", c.Client, next.Holder)
	case next.Holder != before.Holder && next.Epoch != before.Epoch+1:
		j.breaks("I6", c.Revision, "it went from %s to %s, and from epoch %d to %d", before.Holder, next.Holder, before.Epoch, next.Epoch)
	case next.Holder == before.Holder && next.Epoch != before.Epoch:
		j.breaks("I6", c.Revision, "%s claimed it twice: epoch %d, then %d", next.Holder, before.Epoch, next.Epoch)
	}
	if next.Holder != before.Holder && before.Holder != "" {
		j.seen["takeover"]++
	}
}

// lattice has the states that a step may go to.
var lattice = map[v1alpha1.StepState][]v1alpha1.StepState{
	v1alpha1.StepPlanned:  {v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepSkipped, v1alpha1.StepFailed},
	v1alpha1.StepReserved: {v1alpha1.StepPlanned, v1alpha1.StepIntent, v1alpha1.StepSkipped, v1alpha1.StepFailed},
	v1alpha1.StepIntent:   {v1alpha1.StepPlanned, v1alpha1.StepApplied, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced},
	v1alpha1.StepApplied:  {v1alpha1.StepVerified, v1alpha1.StepFailed},
}

// forward: I7.
func (j *judge) forward(c apiserver.Commit, before, next *v1alpha1.RemediationPlanStatus) {
	if protocol.Final(before.Phase) && next.Phase != before.Phase {
		j.breaks("I7", c.Revision, "the plan ended as %s, and is %s", before.Phase, next.Phase)
	}
	if before.Phase == v1alpha1.PlanSealing && next.Phase != v1alpha1.PlanSealing && next.Phase != before.EndingAs {
		j.breaks("I7", c.Revision, "sealed to become %s, it is %s", before.EndingAs, next.Phase)
	}
	if len(before.Steps) > len(next.Steps) {
		j.breaks("I7", c.Revision, "%d steps became %d", len(before.Steps), len(next.Steps))
		return
	}
	for i := range before.Steps {
		was, is := &before.Steps[i], &next.Steps[i]
		if was.State == v1alpha1.StepIntent && is.State == v1alpha1.StepPlanned {
			j.seen["intent that is revoked"]++
		}
		if was.State != is.State && !slices.Contains(lattice[was.State], is.State) {
			j.breaks("I7", c.Revision, "step %d goes from %s to %s", i, was.State, is.State)
		}
		if was.Evidence != nil && (is.Evidence == nil || *is.Evidence != *was.Evidence) {
			j.breaks("I13", c.Revision, "step %d had the record %s, and has another", i, was.Evidence.Digest)
		}
	}
}

// names: I13, for the records that a status names for the first time.
func (j *judge) names(c apiserver.Commit, before, next *v1alpha1.RemediationPlanStatus) {
	for i := range before.Steps[:min(len(before.Steps), len(next.Steps))] {
		if is := next.Steps[i].Evidence; is != nil && before.Steps[i].Evidence == nil {
			j.named(c, is.Sequence)
		}
	}
	if is := next.Decision; is != nil && (before.Decision == nil || before.Decision.StepEvidence != is.StepEvidence) {
		j.named(c, is.Sequence)
	}
}

// named: I13. A status names a record only once the ledger has its head, or a later one: the
// record could else be cut off unseen.
func (j *judge) named(c apiserver.Commit, sequence int64) {
	l := j.ledgers[environment]
	if l == nil || j.deleted["ledger "+environment] {
		return
	}
	for i := range l.Status.Chains {
		if l.Status.Chains[i].PolicyUID == string(j.w.policyUID) && l.Status.Chains[i].Sequence >= sequence {
			return
		}
	}
	j.breaks("I13", c.Revision, "%s names record %d, and no head of it is kept", c.Name, sequence)
}

// busy says that a step may be writing.
func busy(step *v1alpha1.PlanStep) bool {
	switch step.State {
	case v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
		return true
	case v1alpha1.StepPlanned, v1alpha1.StepVerified, v1alpha1.StepSkipped, v1alpha1.StepFailed, v1alpha1.StepFenced:
	}
	return false
}

// alone: I12.
func (j *judge) alone(c apiserver.Commit, p *v1alpha1.RemediationPlan) {
	for i := range p.Status.Steps {
		if !busy(&p.Status.Steps[i]) {
			continue
		}
		for _, name := range planNames(j.plans) {
			other := j.plans[name]
			for k := range other.Status.Steps {
				if name != p.Name && !j.deleted[name] && busy(&other.Status.Steps[k]) && other.Spec.Plan.Targets[k].Name == p.Spec.Plan.Targets[i].Name {
					j.breaks("I12", c.Revision, "%s and %s both hold %s", p.Name, name, p.Spec.Plan.Targets[i].Name)
				}
			}
		}
	}
}

// concurrent: I4 for steps that may be writing.
func (j *judge) concurrent(c apiserver.Commit) {
	limit, n := int(j.loosest().MaxConcurrent), 0
	for _, most := range []*int32{j.w.caps.Concurrent, j.w.clusterCaps.Concurrent} {
		if most != nil {
			limit = min(limit, int(*most))
		}
	}
	for name, p := range j.plans {
		for i := range p.Status.Steps {
			if busy(&p.Status.Steps[i]) && !j.deleted[name] {
				n++
			}
		}
	}
	if n > limit && !j.deleted["ledger "+environment] {
		j.breaks("I4", c.Revision, "%d steps may be writing, with a limit of %d at once", n, limit)
	}
}

// ledger looks at a write of a ledger: what of I4 and I8 is about grants.
func (j *judge) ledger(c apiserver.Commit) {
	if c.After == nil {
		j.deleted["ledger "+c.Name] = true
		delete(j.ledgers, c.Name)
		return
	}
	next, before := typedOf[v1alpha1.RemediationLedger](j.w, c.After), j.ledgers[c.Name]
	j.ledgers[c.Name] = next
	j.keeps(next)
	if before == nil || c.Subresource != "status" {
		return
	}
	if next.Status.Sequence != before.Status.Sequence+1 {
		j.breaks("I4", c.Revision, "the ledger's sequence goes from %d to %d", before.Status.Sequence, next.Status.Sequence)
	}
	for i := range before.Status.Entries {
		entry := &before.Status.Entries[i]
		if now := find(next, entry); now == nil && entry.CompletionTime != nil && c.At.Sub(entry.CompletionTime.Time).Hours() < 24 {
			j.breaks("I4", c.Revision, "the entry of %s step %d is forgotten too soon", entry.PlanName, entry.Step)
		}
	}
	if c.Name == environment {
		j.placed(before, next)
	}
	j.counted(c, before, next)
	j.closes(c, before, next)
	for i := range next.Status.Entries {
		if entry := &next.Status.Entries[i]; find(before, entry) == nil {
			j.seen["grant"]++
			j.grants(c, before, entry)
		}
	}
}

func find(l *v1alpha1.RemediationLedger, entry *v1alpha1.LedgerEntry) *v1alpha1.LedgerEntry {
	for i := range l.Status.Entries {
		if l.Status.Entries[i].StepReference == entry.StepReference {
			return &l.Status.Entries[i]
		}
	}
	return nil
}

// grants: I8 for a new entry. Its breaker is closed, or open for long enough, and
// then nobody else is let through.
func (j *judge) grants(c apiserver.Commit, before *v1alpha1.RemediationLedger, entry *v1alpha1.LedgerEntry) {
	for i := range before.Status.Breakers {
		b := &before.Status.Breakers[i]
		if b.PolicyUID != entry.PolicyUID {
			continue
		}
		switch b.State {
		case v1alpha1.BreakerClosed:
		case v1alpha1.BreakerHalfOpen:
			if due := b.VerdictDeadlineTime; due != nil && !c.At.Before(due.Add(j.loosest().CircuitBreaker.OpenDuration.Duration-second)) {
				j.seen["probe after a verdict that did not come"]++
				continue
			}
			j.breaks("I8", c.Revision, "half open, and %s step %d is granted beside its probe", entry.PlanName, entry.Step)
		case v1alpha1.BreakerOpen:
			j.seen["probe"]++
			open := j.loosest().CircuitBreaker.OpenDuration.Duration
			if c.Name == environment && b.LastOpenTime != nil && c.At.Before(b.LastOpenTime.Add(open-second)) {
				j.breaks("I8", c.Revision, "open since %s, and %s step %d is granted", b.LastOpenTime, entry.PlanName, entry.Step)
			}
		}
	}
}
