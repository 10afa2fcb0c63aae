// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// drifted names one drift: this object, in this state, since then.
type drifted struct {
	namespace, baseline, uid, hash string
	firstSeen                      int64
}

// past is what the plans of a policy did about one drift.
type past struct {
	attempts, earlier   int
	cancelledBy, doneBy string
}

// history reads the ended plans of a policy as it is now. Plans of before it was
// changed do not count: who changes a policy has looked.
func history(policy *planner.Policy, plans []v1alpha1.RemediationPlan) map[drifted]past {
	all := map[drifted]past{}
	for i := range plans {
		p := &plans[i]
		of := &p.Spec.Plan.Policy
		if of.UID != policy.UID || of.Digest != policy.Digest || !protocol.Final(p.Status.Phase) {
			continue
		}
		for step := range p.Spec.Plan.Targets {
			t := &p.Spec.Plan.Targets[step]
			key := drifted{p.Namespace, t.Baseline, t.UID, t.DriftedHash, t.FirstSeen.Unix()}
			h := all[key]
			h.add(p, step)
			all[key] = h
		}
	}
	return all
}

// add counts one step of an ended plan.
func (h *past) add(p *v1alpha1.RemediationPlan, step int) {
	switch outcomeOf(p, step) {
	case succeeded:
		h.doneBy = cmp.Or(h.doneBy, p.Name)
	case cancelled:
		h.cancelledBy = cmp.Or(h.cancelledBy, p.Spec.Control.RequestedBy, p.Status.EndedBy)
		h.earlier++
	case notTried:
		h.earlier++
	case failed:
		h.attempts++
	}
}

type outcome int

const (
	// failed is what is not known to be anything else, so that nothing is tried
	// without end.
	failed outcome = iota
	succeeded
	cancelled
	notTried
)

func outcomeOf(p *v1alpha1.RemediationPlan, step int) outcome {
	var s v1alpha1.PlanStep
	for i := range p.Status.Steps {
		if int(p.Status.Steps[i].Index) == step {
			s = p.Status.Steps[i]
		}
	}
	switch {
	case s.State == v1alpha1.StepVerified, s.State == v1alpha1.StepSkipped && s.Reason == v1alpha1.ReasonAlreadyDesired:
		return succeeded
	case p.Status.Phase == v1alpha1.PlanCancelled && p.Spec.Control.Verb == v1alpha1.PlanCancel:
		return cancelled
	case p.Status.Phase == v1alpha1.PlanSuperseded, p.Status.Phase == v1alpha1.PlanCancelled:
		return notTried // the policy, or a halt, ended it
	case s.State == v1alpha1.StepSkipped && s.Reason == v1alpha1.ReasonStopped:
		return notTried // another step of it failed
	}
	return failed
}
