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
func writesOf(policy *planner.Policy, plans map[string]*v1alpha1.RemediationPlan) map[repaired][]effect.Repair {
	all := map[repaired][]effect.Repair{}
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

// chain looks for a row of repairs of a drift that did not help. A history without any verdict is that
// of an installation that assesses no effect, and holds nothing back.
func (g *gatherer) chain(d *planner.Drift) effect.Chain {
	uid := d.UID
	if d.State == v1alpha1.StateMissing {
		uid = "" // as in a plan: what is to be made has none
	}
	history := g.writes[repaired{d.Namespace, d.Baseline, uid, planner.ActionOn(&g.Policy.Spec, d)}]
	chain := effect.FindChain(history, true, d.DriftedHash, g.Now, g.forgiven())
	if !chain.Assessed() {
		return effect.Chain{}
	}
	return chain
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
