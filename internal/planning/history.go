// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"
	"strings"
	"time"

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
	attempts           int
	ended              []string // the uids of the plans
	failure            string   // of the last attempt, in words
	canceledBy, doneBy string
}

// object names one object, whatever its drift.
type object struct{ namespace, baseline string }

// row is how many plans for one object ended without success since the last success,
// and when the last of them ended.
type row struct {
	plans int
	ended time.Time
}

// records are what the ended plans of a policy did.
type records struct {
	drifts  map[drifted]past
	rows    map[object]row
	choices map[object]choice
}

// choice is the state that the last plan put an object into, if a person chose it.
type choice struct{ hash, by string }

// choiceOf returns the choice after a plan that put a target back.
func choiceOf(p *v1alpha1.RemediationPlan, t *v1alpha1.PlanTarget) choice {
	if p.Spec.Plan.Request == nil || t.Action != v1alpha1.ActionRollback {
		return choice{}
	}
	return choice{t.DesiredHash, p.Spec.Plan.InitiatedBy}
}

// history reads the ended plans of a policy as the policy is now. Plans of before the
// policy was changed do not count: the author of the change has looked.
func history(policy *planner.Policy, plans []v1alpha1.RemediationPlan) records {
	all := records{map[drifted]past{}, map[object]row{}, map[object]choice{}}
	for _, p := range endedPlans(policy, plans) {
		for step := range p.Spec.Plan.Targets {
			t := &p.Spec.Plan.Targets[step]
			key := drifted{p.Namespace, t.BaselineName, t.UID, t.DriftedHash, t.FirstSeenTime.Unix()}
			h := all.drifts[key]
			outcome := outcomeOf(p, step)
			h.add(p, step, outcome)
			all.drifts[key] = h
			of := object{p.Namespace, t.BaselineName}
			all.rows[of] = all.rows[of].after(p, outcome)
			if outcome == succeeded {
				all.choices[of] = choiceOf(p, t)
			}
		}
	}
	return all
}

// endedPlans returns the ended plans of the policy as the policy is now, in the order in
// which they ended.
func endedPlans(policy *planner.Policy, plans []v1alpha1.RemediationPlan) []*v1alpha1.RemediationPlan {
	var ended []*v1alpha1.RemediationPlan
	for i := range plans {
		of := &plans[i].Spec.Plan.Policy
		if of.UID == policy.UID && of.Digest == policy.Digest && protocol.Final(plans[i].Status.Phase) {
			ended = append(ended, &plans[i])
		}
	}
	slices.SortFunc(ended, func(a, b *v1alpha1.RemediationPlan) int {
		return cmp.Or(endOf(a).Compare(endOf(b)), comparePlans(a, b))
	})
	return ended
}

// endOf returns when an ended plan ended; zero when its status does not say.
func endOf(p *v1alpha1.RemediationPlan) time.Time {
	if p.Status.CompletionTime == nil {
		return time.Time{}
	}
	return p.Status.CompletionTime.Time
}

// after returns the row with one more plan that ended.
func (r row) after(p *v1alpha1.RemediationPlan, o outcome) row {
	if o == succeeded {
		return row{}
	}
	return row{r.plans + 1, endOf(p)}
}

// add counts one step of an ended plan.
func (h *past) add(p *v1alpha1.RemediationPlan, step int, o outcome) {
	h.ended = append(h.ended, string(p.UID))
	switch o {
	case succeeded:
		h.doneBy = cmp.Or(h.doneBy, p.Name)
	case canceled:
		h.canceledBy = cmp.Or(h.canceledBy, p.Spec.Control.RequestedBy, p.Status.EndedBy)
	case notTried:
	case failed:
		h.attempts++
		s := stepOf(p, step)
		h.failure = strings.TrimPrefix(string(s.Reason)+": "+s.Message, ": ")
	}
}

type outcome int

const (
	// failed is what is not known to be anything else, so that nothing is tried
	// without end.
	failed outcome = iota
	succeeded
	canceled
	notTried
)

// stepOf is a step of a plan; the zero one when the status does not tell of it.
func stepOf(p *v1alpha1.RemediationPlan, step int) v1alpha1.PlanStep {
	for i := range p.Status.Steps {
		if int(p.Status.Steps[i].Index) == step {
			return p.Status.Steps[i]
		}
	}
	return v1alpha1.PlanStep{}
}

func outcomeOf(p *v1alpha1.RemediationPlan, step int) outcome {
	s := stepOf(p, step)
	switch {
	case s.State == v1alpha1.StepVerified, s.State == v1alpha1.StepSkipped && s.Reason == v1alpha1.ReasonAlreadyDesired:
		return succeeded
	case p.Status.Phase == v1alpha1.PlanCanceled && p.Spec.Control.Verb == v1alpha1.PlanCancel:
		return canceled
	case s.State == v1alpha1.StepSkipped && ownReason(s.Reason):
		return failed // however the plan ended: the next plan would end in the same way
	case p.Status.Phase == v1alpha1.PlanSuperseded, p.Status.Phase == v1alpha1.PlanCanceled:
		return notTried // the policy, or a halt, ended it
	case s.State == v1alpha1.StepSkipped:
		return notTried // another step of it failed, another plan had the target, or time was over
	}
	return failed
}

// ownReason says that a step was skipped for a reason of its own, and not because of
// another step, another plan or the time.
func ownReason(reason v1alpha1.StepReason) bool {
	switch reason {
	case v1alpha1.ReasonStopped, v1alpha1.ReasonClaimed, v1alpha1.ReasonDeadlineExceeded, v1alpha1.ReasonPolicyChanged, v1alpha1.ReasonAboveMaximumAge,
		v1alpha1.ReasonBlastRadius, v1alpha1.ReasonBelowSeverity:
		return false
	case v1alpha1.ReasonTargetMoved, v1alpha1.ReasonTargetReplaced, v1alpha1.ReasonTargetContended, v1alpha1.ReasonAlreadyDesired,
		v1alpha1.ReasonWouldNotConverge, v1alpha1.ReasonTerminating, v1alpha1.ReasonNotAllowed, v1alpha1.ReasonRevisionDamaged,
		v1alpha1.ReasonUnhealthy, v1alpha1.ReasonRefused, v1alpha1.ReasonNoStandby:
	}
	return true
}
