// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// longWait is after how long a plan that waits must have given all back, whatever happened to
// its executors.
const longWait = 15 * time.Minute

// waiting says that a plan waits: it has written nothing that it still watches, and says what it
// waits for.
func waiting(p *v1alpha1.RemediationPlan) bool {
	for i := range p.Status.Steps {
		if p.Status.Steps[i].State == v1alpha1.StepApplied {
			return false
		}
	}
	switch p.Status.Phase {
	case v1alpha1.PlanDeferred, v1alpha1.PlanScheduled, v1alpha1.PlanPaused:
		return true
	case v1alpha1.PlanRunning:
		return p.Status.DeferralReason != "" && p.Status.ResumeTime != nil
	case v1alpha1.PlanCreated, v1alpha1.PlanSealing, v1alpha1.PlanCanceled, v1alpha1.PlanSucceeded, v1alpha1.PlanPartialSuccess,
		v1alpha1.PlanFailed, v1alpha1.PlanSuperseded, v1alpha1.PlanSkipped, "":
	}
	return false
}

// holder remembers by which process a place or a target was taken last.
func (j *judge) holder(c apiserver.Commit) {
	switch c.Resource.Resource {
	case "remediationledgers":
		if l := j.ledgers[c.Name]; l != nil {
			for i := range l.Status.Entries {
				e := &l.Status.Entries[i]
				key := c.Name + " " + stepID(e.PlanUID, e.Step)
				if was := j.entries[key]; was.epoch != e.Epoch || !was.open {
					j.entries[key] = taken{c.Client, e.Epoch, true}
				}
			}
		}
	case "baselines":
		if b := j.permits.baselines[c.Name]; b != nil && b.Status.PlanName != j.claims[c.Name].plan {
			claim := claimed{plan: b.Status.PlanName, client: c.Client, revision: c.Revision}
			if p := j.plans[claim.plan]; p != nil {
				claim.epoch = p.Status.Epoch
			}
			j.claims[c.Name] = claim
		}
	}
}

// taken says which process took a place, and in which epoch of the plan.
type taken struct {
	client string
	epoch  int64
	open   bool
}

// claimed says which plan has a target, which process took it, and in which epoch of the plan.
type claimed struct {
	plan, client    string
	revision, epoch int64
}

// letGo: I21 for plans that have ended. A claim that was stored later is one that the network
// held, or of an executor that slept; it holds nothing.
func (j *judge) letGo() {
	for baseline, claim := range j.claims {
		p := j.plans[claim.plan]
		switch {
		case p == nil || j.deleted[claim.plan] || j.finalAt[claim.plan] == 0:
		case claim.client != p.Status.Holder || claim.revision > j.finalAt[claim.plan]:
			j.seen["claim that holds nothing any more"]++
		default:
			j.breaks("I21", claim.revision, "%s has ended as %s, and holds %s", p.Name, p.Status.Phase, baseline)
		}
	}
}

// yields: I21 at the moment at which an executor says that a plan waits: of the steps that have
// not begun, that executor has given back all that it took. A process that loses a plan and takes it
// over again knows no more of the epoch before than another process.
func (j *judge) yields(c apiserver.Commit, before, next *v1alpha1.RemediationPlan) {
	if !waiting(next) || next.Status.Phase == v1alpha1.PlanPaused || waiting(before) {
		return
	}
	j.seen["plan that begins to wait"]++
	if strings.HasPrefix(next.Status.DeferralReason, "Cap") {
		j.seen["wait for a cap"]++
	}
	if strings.Contains(next.Status.DeferralReason, "mass drift") {
		j.seen["plan that waits for the end of a mass drift"]++
	}
	if strings.Contains(next.Status.DeferralReason, "RolloutUnderWay") {
		j.seen["plan that waits for the end of a run"]++
	}
	if strings.Contains(next.Status.DeferralReason, "(ledger ") && unbegun(next) > 1 {
		return // another step of the plan may have that place, and is about to go on with it
	}
	j.holdsNothing(c, next, func(step *v1alpha1.PlanStep, client string, epoch int64) bool {
		return step.StartTime == nil && client == c.Client && epoch == next.Status.Epoch
	})
}

// unbegun counts the steps that have not begun.
func unbegun(p *v1alpha1.RemediationPlan) int {
	n := 0
	for i := range p.Status.Steps {
		if p.Status.Steps[i].State == v1alpha1.StepPlanned {
			n++
		}
	}
	return n
}

// yielded: I21 for a plan that has waited for long.
func (j *judge) yielded(c apiserver.Commit) {
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		if j.deleted[name] || !waiting(p) {
			delete(j.waitsSince, name)
			continue
		}
		since, known := j.waitsSince[name]
		switch {
		case !known:
			j.waitsSince[name] = c.At
		case c.At.Sub(since) > longWait && !j.judgedWait[name+since.String()]:
			j.judgedWait[name+since.String()] = true
			j.seen["plan that waits for long"]++
			j.intendsNothing(c, p)
			j.holdsNothing(c, p, func(*v1alpha1.PlanStep, string, int64) bool { return true })
		}
	}
}

// intendsNothing: I21 for the intents of a plan that has waited for long. The one that stays is
// of a plan that may not fence its target.
func (j *judge) intendsNothing(c apiserver.Commit, p *v1alpha1.RemediationPlan) {
	for i := range p.Status.Steps {
		if step := &p.Status.Steps[i]; step.State == v1alpha1.StepIntent && step.Fence == "" {
			j.breaks("I21", c.Revision, "%s is %s, waits for %q, and its step %d still intends to write", p.Name, p.Status.Phase, p.Status.DeferralReason, i)
		}
	}
}

// judgedHold says whether a step may hold nothing that a process took in an epoch of the plan.
type judgedHold func(step *v1alpha1.PlanStep, client string, epoch int64) bool

// holdsNothing: the steps of a plan that have not begun hold no place and no target that one of
// some processes took. What a process took that died before it said so, goes with the sweep of
// the ledgers; its claim remains.
func (j *judge) holdsNothing(c apiserver.Commit, p *v1alpha1.RemediationPlan, judged judgedHold) {
	for i := range p.Status.Steps {
		step := &p.Status.Steps[i]
		if step.State != v1alpha1.StepPlanned && step.State != v1alpha1.StepReserved {
			continue
		}
		for _, name := range ledgerNames {
			l := j.ledgers[name]
			if l == nil {
				continue
			}
			e := entryOf(l, p, step.Index)
			if e == nil || e.CompletionTime != nil {
				continue
			}
			if by := j.entries[name+" "+stepID(e.PlanUID, e.Step)].client; judged(step, by, e.Epoch) {
				j.breaks("I21", c.Revision, "%s is %s, waits for %q, and its step %d holds a place of ledger %s, which %s took in epoch %d of %d", p.Name, p.Status.Phase, p.Status.DeferralReason, i, name, by, e.Epoch, p.Status.Epoch)
			}
		}
		j.hasNoClaim(c, p, i, judged)
	}
}

func (j *judge) hasNoClaim(c apiserver.Commit, p *v1alpha1.RemediationPlan, step int, judged judgedHold) {
	claim := j.claims[p.Spec.Plan.Targets[step].BaselineName]
	switch {
	case claim.plan != p.Name:
	case !judged(&p.Status.Steps[step], claim.client, claim.epoch):
	case claim.client != p.Status.Holder, claim.epoch != p.Status.Epoch:
		j.seen["claim that an executor left"]++
	default:
		j.breaks("I21", c.Revision, "%s is %s, waits for %q, and its step %d holds its target", p.Name, p.Status.Phase, p.Status.DeferralReason, step)
	}
}
