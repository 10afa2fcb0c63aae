// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// repaired names what a row of repairs is about: one action on one object. The object has no uid
// where it was gone.
type repaired struct {
	namespace, baseline, uid string
	action                   v1alpha1.RemediationAction
}

// writesOf are the writes of all plans, of all policies. A policy that was changed since has been
// looked at, so the writes of its plans of before are left out.
func (g *gatherer) writesOf(policy *planner.Policy, plans map[string]*v1alpha1.RemediationPlan) map[repaired][]effect.Repair {
	all, assessed := map[repaired][]effect.Repair{}, assessmentsOf(g.world)
	for _, p := range plans {
		if of := &p.Spec.Plan.Policy; of.UID == policy.UID && of.Digest != policy.Digest {
			continue
		}
		for i := range p.Status.Steps {
			step := &p.Status.Steps[i]
			if int(step.Index) >= len(p.Spec.Plan.Targets) {
				continue
			}
			target := &p.Spec.Plan.Targets[step.Index]
			if r, wrote := repairOf(p, step, target); wrote {
				if r.Verdict == "" {
					r.Verdict, r.Unread = g.verdictOf(p, step, assessed)
				}
				key := repaired{p.Namespace, target.BaselineName, target.UID, target.Action}
				all[key] = append(all[key], r)
			}
		}
	}
	return all
}

// repairOf is the write of a step; wrote is false for a step that proves that it wrote nothing.
func repairOf(p *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep, target *v1alpha1.PlanTarget) (r effect.Repair, wrote bool) {
	r = effect.Repair{Plan: p.Namespace + "/" + p.Name, PreHash: target.DriftedHash}
	if step.Effect != nil {
		r.Verdict = effect.Verdict(step.Effect.Verdict)
	}
	switch {
	case step.Result != nil:
		r.WrittenTime, r.PostHash = step.Result.RecordTime.Time, step.Result.Hash
		return r, true
	case step.State == v1alpha1.StepFailed && step.Intent != nil: // what it wrote is not known
		r.WrittenTime = step.Intent.StorageTime.Time
		return r, true
	}
	return r, false
}

// assessmentsOf finds the assessments of steps, by namespace and name.
func assessmentsOf(w *World) map[object]*v1alpha1.EffectivenessAssessment {
	all := make(map[object]*v1alpha1.EffectivenessAssessment, len(w.Assessments))
	for i := range w.Assessments {
		all[object{w.Assessments[i].Namespace, w.Assessments[i].Name}] = &w.Assessments[i]
	}
	return all
}

// verdictOf is the verdict on a step that no executor has copied into the plan; empty while the step is
// measured. The verdict is unread if its assessment should be there and is not.
func (g *gatherer) verdictOf(p *v1alpha1.RemediationPlan, step *v1alpha1.PlanStep, assessed map[object]*v1alpha1.EffectivenessAssessment) (verdict effect.Verdict, unread bool) {
	a := assessed[object{p.Namespace, effect.NameOf(p.Name, step.Index)}]
	if a == nil || a.Spec.Subject.Plan == nil || a.Spec.Subject.Plan.UID != string(p.UID) {
		return "", g.world.BeginsAssessments && step.CompletionTime != nil && !step.CompletionTime.Add(begins).After(g.Now)
	}
	if effect.Phase(a.Status.Phase) == effect.Failed {
		return effect.Inconclusive, false
	}
	return effect.Verdict(a.Status.Verdict), false
}

// chain looks for a row of repairs of a drift that did not help.
func (g *gatherer) chain(d *planner.Drift) effect.Chain {
	uid := d.UID
	if d.State == v1alpha1.StateMissing {
		uid = "" // as in a plan: what is to be made has none
	}
	history := g.writes[repaired{d.Namespace, d.Baseline, uid, planner.ActionOn(&g.Policy.Spec, d)}]
	return effect.FindChain(history, d.DriftedHash, g.Now, g.forgiven())
}

// forgiven is until when a person has looked at chains; zero where none has. A time that is not
// over yet, or that cannot be read, forgives nothing.
func (g *gatherer) forgiven() time.Time {
	at, err := time.Parse(time.RFC3339, g.Policy.Annotations[v1alpha1.AnnotationChainsForgiven])
	if err != nil || at.After(g.Now) {
		return time.Time{}
	}
	return at
}
