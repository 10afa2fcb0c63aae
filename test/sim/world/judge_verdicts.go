// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// assessed notes a verdict: what is stored when a breaker turns counts.
func (j *judge) assessed(c apiserver.Commit) {
	if c.After == nil {
		return
	}
	a := typedOf[v1alpha1.EffectivenessAssessment](j.w, c.After)
	if plan := a.Spec.Subject.Plan; plan != nil && a.Status.Verdict != "" {
		j.verdicts[fmt.Sprint(plan.UID, "/", plan.Step)] = a.Status.Verdict
	}
}

// closes: I35. While effects are assessed, a breaker that is not closed becomes so by an Effective
// assessment of its probe alone.
func (j *judge) closes(c apiserver.Commit, before, next *v1alpha1.RemediationLedger) {
	if !j.w.verdicts || c.User != Executor || c.Name != environment {
		return
	}
	for i := range before.Status.Breakers {
		was := &before.Status.Breakers[i]
		is := breakerOf(next, was.PolicyUID)
		switch {
		case was.VerdictDeadlineTime != nil && is.VerdictDeadlineTime == nil:
			j.seen["breaker that waits for a verdict"]++
			if is.State != v1alpha1.BreakerHalfOpen {
				j.seen["verdict that turns a breaker"]++
			}
		case was.State == v1alpha1.BreakerClosed:
			continue
		}
		if was.State == v1alpha1.BreakerClosed || is.State != v1alpha1.BreakerClosed {
			continue
		}
		if was.Probe == nil || j.verdicts[fmt.Sprint(was.Probe.PlanUID, "/", was.Probe.Step)] != v1alpha1.VerdictEffective {
			j.breaks("I35", c.Revision, "the breaker went from %+v to %+v, and no assessment of its probe is Effective", was, is)
		}
	}
}

// noted counts the verdicts that come into a plan, and says that none changes: I7.
func (j *judge) noted(c apiserver.Commit, before, next *v1alpha1.RemediationPlanStatus) {
	for i := range before.Steps[:min(len(before.Steps), len(next.Steps))] {
		was, is := before.Steps[i].Effect, next.Steps[i].Effect
		switch {
		case was == nil && is != nil:
			j.seen["verdict in a plan"]++
		case was != nil && (is == nil || is.Verdict != was.Verdict):
			j.breaks("I7", c.Revision, "step %d had the verdict %s, and has another", i, was.Verdict)
		}
	}
}
