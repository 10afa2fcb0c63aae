// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Request is what a person asks of a policy: to put these objects back now. The user is
// InitiatedBy of the [Input].
//
// The word of a person stands for what the policy waits for: its trigger, the least
// severity, both bounds of the age, and the schedule. It is also the decision that the
// policy asks a person for after three plans in vain, or after a plan was canceled. All
// other obstacles and limits hold.
type Request struct {
	Namespace, Name, UID string
	Targets              []Chosen
}

// Chosen is one target of a request.
type Chosen struct {
	Baseline string
	// DriftedHash is what the person saw.
	DriftedHash string
	// Revision that a rollback is to lead to; empty for the last one that was ready.
	Revision string
	// Target of the Baseline, as far as it is known.
	Target v1alpha1.BaselineTarget
	// Standing of the object under the policy.
	Standing Standing
	// Environment of the namespace; empty when there is none.
	Environment string
}

// Standing says whether a policy is about an object, and whether the object drifted.
type Standing int

const (
	// StandingNotGuarded says that no guarded object has a Baseline of the name.
	StandingNotGuarded Standing = iota
	// StandingOtherEnvironment says that its namespace belongs to another Environment than the policy's.
	StandingOtherEnvironment
	// StandingNotSelected says that the policy selects other kinds or labels.
	StandingNotSelected
	// StandingNotDrifted says that it did not drift, or that its state is not known.
	StandingNotDrifted
	// StandingDrifted says that it is one of the drifts of the input.
	StandingDrifted
)

// maxRefusal is the schema's bound on the words of a refusal, in bytes.
const maxRefusal = 512

// Refusal returns why a policy answers no request at all, with the field and what to do;
// empty when it does.
func Refusal(name string, policy *v1alpha1.RemediationPolicy) string {
	return diff.TruncateText(refusal(name, policy), maxRefusal)
}

func refusal(name string, policy *v1alpha1.RemediationPolicy) string {
	switch {
	case policy == nil:
		return fmt.Sprintf(`spec.policyName: there is no RemediationPolicy %q: name one that "kubectl get remediationpolicies" lists`, name)
	case policy.DeletionTimestamp != nil:
		return fmt.Sprintf("spec.policyName: policy %s is being deleted: name another", name)
	case policy.Spec.Mode != v1alpha1.PolicyModeActive:
		return fmt.Sprintf(`spec.mode of policy %s is %s, and an active policy alone writes: run "kubectl plumbline policy activate %s", or name another policy`,
			name, cmp.Or(policy.Spec.Mode, v1alpha1.PolicyModeObserveOnly), name)
	case policy.Spec.Action == v1alpha1.ActionNotifyOnly:
		return fmt.Sprintf("spec.action of policy %s is NotifyOnly, which does not write: name a policy with another action", name)
	}
	return ""
}

// asked returns the drifts that a request asks for, and leaves out what is none.
func (o *Output) asked(in *Input) []*Drift {
	var drifts []*Drift
	for i := range in.Request.Targets {
		c := &in.Request.Targets[i]
		d := in.find(in.Request.Namespace, c.Baseline)
		if c.Standing == StandingDrifted && d != nil {
			drifts = append(drifts, d)
			continue
		}
		o.leaveOut(&Drift{Namespace: in.Request.Namespace, Baseline: c.Baseline, Target: c.Target}, standing(in, c))
	}
	return drifts
}

func (in *Input) find(namespace, baseline string) *Drift {
	for i := range in.Drifts {
		if in.Drifts[i].Namespace == namespace && in.Drifts[i].Baseline == baseline {
			return &in.Drifts[i]
		}
	}
	return nil
}

// standing says why what is chosen is no drift of the policy.
func standing(in *Input, c *Chosen) Obstacle {
	switch name := in.Policy.Name; c.Standing {
	case StandingOtherEnvironment:
		return obstacle(ReasonNotSelected, "its namespace belongs to environment %q, and policy %s is for %q: name a policy of its environment", c.Environment, name, in.Policy.Spec.EnvironmentName)
	case StandingNotSelected:
		return obstacle(ReasonNotSelected, "policy %s does not select it: see spec.resources and spec.selector of the policy, or name another", name)
	case StandingNotDrifted:
		return obstacle(ReasonNotDrifted, "it has not drifted: there is no drift to remediate")
	case StandingNotGuarded, StandingDrifted:
	}
	return obstacle(ReasonNotGuarded, "no guarded object has this Baseline")
}

// requested says what is wrong with the request for a drift.
func requested(in *Input, d *Drift) Obstacle {
	c := in.Request.target(d)
	switch {
	case c == nil:
		return obstacle(ReasonNotSelected, "the request does not name it")
	case c.DriftedHash != d.DriftedHash:
		return obstacle(ReasonChanged, "it changed since the request was made, and is %s now: look again", d.DriftedHash)
	case c.Revision != "" && in.Policy.Spec.Action != v1alpha1.ActionRollback:
		return obstacle(ReasonNotApplicable, "spec.action of policy %s is %s, and a revision is chosen for a Rollback alone", in.Policy.Name, in.Policy.Spec.Action)
	case c.Revision != "" && d.To == nil:
		return obstacle(ReasonNoRevision, "%s is not one of its authorized states that are kept", c.Revision)
	}
	return Obstacle{}
}

func (r *Request) target(d *Drift) *Chosen {
	for i := range r.Targets {
		if r.Namespace == d.Namespace && r.Targets[i].Baseline == d.Baseline {
			return &r.Targets[i]
		}
	}
	return nil
}

// reference names the request in a plan; nil without a request.
func (r *Request) reference() *v1alpha1.PlanRequest {
	if r == nil {
		return nil
	}
	return &v1alpha1.PlanRequest{Name: r.Name, UID: r.UID}
}

// uid of the request; empty without one.
func (r *Request) uid() string {
	if r == nil {
		return ""
	}
	return r.UID
}

// Answer returns the answer to a request: the plan that was made for it, nil when none
// was, and the targets that were left out.
func Answer(plan *v1alpha1.RemediationPlan, left []LeftOut) v1alpha1.RemediationRequestStatus {
	status := v1alpha1.RemediationRequestStatus{Outcome: v1alpha1.RequestRefused}
	if plan != nil {
		status.Outcome, status.PlanName = v1alpha1.RequestPlanned, plan.Name
	}
	for i := range left {
		if len(status.LeftOut) == maxTargets {
			break
		}
		l := &left[i]
		status.LeftOut = append(status.LeftOut, v1alpha1.LeftOut{
			BaselineName: l.Drift.Baseline, Reason: string(l.Reason), Message: diff.TruncateText(l.Message, maxLeftOutMessage),
		})
	}
	return status
}
