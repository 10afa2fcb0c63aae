// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// PlanOutcome tells what became of a verb.
type PlanOutcome struct {
	Progress
	// Reason is empty while the request is pending.
	Reason PlanReason
	// Phase in which the plan ended.
	Phase v1alpha1.PlanPhase
	// Deferral is why the plan waits; empty when it goes on.
	Deferral string
	// Control is what another user asked, where the reason is PlanSuperseded.
	Control v1alpha1.PlanControl
}

// Refusal tells why the verb was not carried out.
func (o PlanOutcome) Refusal() string {
	switch o.Reason {
	case PlanWasDeleted:
		return "the plan was deleted meanwhile"
	case PlanEndedBefore:
		return fmt.Sprintf("the plan ended as %s before", o.Phase)
	case PlanSuperseded:
		return (&PlanSupersededError{Control: o.Control}).Error()
	case PlanWasCanceled, PlanWasPaused, PlanEndedSince, PlanRuns, PlanWaits:
		return "" // these are no refusals
	default:
		return string(o.Reason)
	}
}

// PlanReason says why a verb was taken or refused.
type PlanReason string

// The reasons.
const (
	// PlanWasDeleted: the plan is gone.
	PlanWasDeleted PlanReason = "Deleted"
	// PlanWasCanceled and PlanWasPaused: the executor has done what was asked.
	PlanWasCanceled PlanReason = "Canceled"
	PlanWasPaused   PlanReason = "Paused"
	// PlanEndedBefore: the plan ended otherwise before the executor saw the request.
	PlanEndedBefore PlanReason = "EndedBefore"
	// PlanEndedSince: the plan went on, and has ended.
	PlanEndedSince PlanReason = "EndedSince"
	// PlanSuperseded: another user asked something else.
	PlanSuperseded PlanReason = "Superseded"
	// PlanRuns: the plan goes on; Deferral says what it waits for in between.
	PlanRuns PlanReason = "Runs"
	// PlanWaits: the executor has taken the request, and Deferral holds the plan back.
	PlanWaits PlanReason = "Waits"
)

// JudgePlanVerb judges whether the executor has done what was asked of the plan;
// asked is the plan as it was stored with the request.
func JudgePlanVerb(verb v1alpha1.PlanVerb, p, asked *v1alpha1.RemediationPlan, deleted bool) PlanOutcome {
	phase := p.Status.Phase
	ended, ends := protocol.Final(phase), verb == v1alpha1.PlanCancel || verb == v1alpha1.PlanPause
	switch {
	case deleted:
		return PlanOutcome{Progress: Refused, Reason: PlanWasDeleted}
	case verb == v1alpha1.PlanCancel && phase == v1alpha1.PlanCanceled:
		return PlanOutcome{Progress: Taken, Reason: PlanWasCanceled}
	case ended && ends:
		return PlanOutcome{Progress: Refused, Reason: PlanEndedBefore, Phase: phase}
	case ended:
		return PlanOutcome{Progress: Taken, Reason: PlanEndedSince, Phase: phase}
	case p.Spec.Control != asked.Spec.Control:
		return PlanOutcome{Progress: Refused, Reason: PlanSuperseded, Control: p.Spec.Control}
	case verb == v1alpha1.PlanPause && phase == v1alpha1.PlanPaused:
		return PlanOutcome{Progress: Taken, Reason: PlanWasPaused}
	case ends:
		return PlanOutcome{}
	default:
		return judgeUnderWay(p, asked)
	}
}

// judgeUnderWay judges execute and resume: the plan must have been looked at since, and
// go on or say what holds it back.
func judgeUnderWay(p, asked *v1alpha1.RemediationPlan) PlanOutcome {
	if p.Status.ObservedGeneration < asked.Generation {
		return PlanOutcome{}
	}
	switch p.Status.Phase {
	case v1alpha1.PlanRunning:
		return PlanOutcome{Progress: Taken, Reason: PlanRuns, Deferral: p.Status.DeferralReason}
	case v1alpha1.PlanDeferred, v1alpha1.PlanScheduled:
		return PlanOutcome{Progress: Taken, Reason: PlanWaits, Deferral: p.Status.DeferralReason}
	default:
		return PlanOutcome{}
	}
}

// AwaitPlanVerb waits until it is settled what became of the verb, and returns the plan as it
// was last. The outcome is pending still when the context ends first.
func AwaitPlanVerb(ctx context.Context, c client.WithWatch, verb v1alpha1.PlanVerb, asked *v1alpha1.RemediationPlan) (outcome PlanOutcome, last *v1alpha1.RemediationPlan, err error) {
	last = asked
	err = Await(ctx, c, asked, &v1alpha1.RemediationPlanList{}, func(current *v1alpha1.RemediationPlan, deleted bool) bool {
		last = current
		outcome = JudgePlanVerb(verb, current, asked, deleted)
		return outcome.Progress != Pending
	})
	return outcome, last, err
}
