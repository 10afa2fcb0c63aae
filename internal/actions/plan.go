// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// PlanResume asks a plan to go on: it takes the verb of a pause away.
const PlanResume v1alpha1.PlanVerb = ""

// PlanStanding says that a plan is as a verb wants it.
type PlanStanding struct {
	Reason PlanStandingReason
	// By is the user who asked for it, where a user did.
	By string
}

// PlanStandingReason says in which way a plan is as a verb wants it.
type PlanStandingReason string

// The reasons.
const (
	PlanIsCanceled       PlanStandingReason = "Canceled"
	PlanIsPaused         PlanStandingReason = "Paused"
	PlanIsRunning        PlanStandingReason = "Running"
	PlanIsToBeExecuted   PlanStandingReason = "ToBeExecuted"
	planIsNotAsRequested PlanStandingReason = ""
)

// FindPlanStanding reports whether a plan is as the verb wants it already.
func FindPlanStanding(verb v1alpha1.PlanVerb, p *v1alpha1.RemediationPlan) (PlanStanding, bool) {
	control := p.Spec.Control
	standing := PlanStanding{By: control.RequestedBy}
	switch verb {
	case v1alpha1.PlanCancel:
		if p.Status.Phase == v1alpha1.PlanCanceled {
			standing.Reason = PlanIsCanceled
		}
	case v1alpha1.PlanPause:
		if p.Status.Phase == v1alpha1.PlanPaused && control.Verb == v1alpha1.PlanPause {
			standing.Reason = PlanIsPaused
		}
	case v1alpha1.PlanExecute:
		switch {
		case !protocol.Final(p.Status.Phase) && control.Verb == v1alpha1.PlanExecute:
			standing.Reason = PlanIsToBeExecuted
		case p.Status.Phase == v1alpha1.PlanRunning && p.Status.DeferralReason == "" && control.Verb == PlanResume:
			standing.Reason = PlanIsRunning
		}
	}
	return standing, standing.Reason != planIsNotAsRequested
}

// PlanRefusedError says why a verb makes no sense for a plan.
type PlanRefusedError struct {
	Reason PlanRefusalReason
	// Phase in which the plan has ended, or as which it is ending.
	Phase v1alpha1.PlanPhase
	// At is when the plan ended; zero if that is not known.
	At time.Time
	// By is the user who asked to cancel the plan.
	By string
}

// PlanRefusalReason says why a verb makes no sense for a plan.
type PlanRefusalReason string

// The reasons.
const (
	// PlanHasEnded: nothing can be asked of it any more.
	PlanHasEnded PlanRefusalReason = "Ended"
	// PlanIsToBeCanceled: a cancellation is not taken back.
	PlanIsToBeCanceled PlanRefusalReason = "ToBeCanceled"
	// PlanIsEnding: the executor makes sure that no write of it follows.
	PlanIsEnding PlanRefusalReason = "Ending"
	// PlanIsNotPaused: there is nothing to resume.
	PlanIsNotPaused PlanRefusalReason = "NotPaused"
)

func (e *PlanRefusedError) Error() string {
	switch e.Reason {
	case PlanHasEnded:
		return fmt.Sprintf("the plan has ended as %s", e.Phase)
	case PlanIsToBeCanceled:
		return e.By + " has asked to cancel the plan, and that is not taken back"
	case PlanIsEnding:
		return fmt.Sprintf("the plan is ending as %s", e.Phase)
	case PlanIsNotPaused:
		return "the plan is not paused"
	default:
		return string(e.Reason)
	}
}

// RefusePlanVerb says why a verb makes no sense for a plan; nil when it does.
func RefusePlanVerb(verb v1alpha1.PlanVerb, p *v1alpha1.RemediationPlan) *PlanRefusedError {
	control := p.Spec.Control
	switch {
	case protocol.Final(p.Status.Phase):
		refused := &PlanRefusedError{Reason: PlanHasEnded, Phase: p.Status.Phase}
		if p.Status.CompletionTime != nil {
			refused.At = p.Status.CompletionTime.Time
		}
		return refused
	case verb == v1alpha1.PlanCancel:
		return nil
	case control.Verb == v1alpha1.PlanCancel:
		return &PlanRefusedError{Reason: PlanIsToBeCanceled, By: control.RequestedBy}
	case p.Status.Phase == v1alpha1.PlanSealing && p.Status.EndingAs != v1alpha1.PlanPaused:
		return &PlanRefusedError{Reason: PlanIsEnding, Phase: p.Status.EndingAs}
	case verb == PlanResume && control.Verb != v1alpha1.PlanPause && p.Status.Phase != v1alpha1.PlanPaused:
		return &PlanRefusedError{Reason: PlanIsNotPaused}
	default:
		return nil
	}
}

// NeedsExecute reports whether a plan that is resumed waits until a person executes it.
func NeedsExecute(p *v1alpha1.RemediationPlan) bool {
	return p.Spec.Plan.Trigger == v1alpha1.TriggerManual && p.Spec.Plan.Request == nil
}

// PlanSupersededError says that another user has asked something else of a plan.
type PlanSupersededError struct {
	// Control is what that user asked.
	Control v1alpha1.PlanControl
}

func (e *PlanSupersededError) Error() string {
	return fmt.Sprintf("%s has asked for %q since the plan was shown", e.Control.RequestedBy, e.Control.Verb)
}

// RequestPlanVerb sets the control of a plan, if nobody has asked anything else of it since
// it was shown; otherwise the error is a PlanSupersededError or a PlanRefusedError. What is
// stored is in plan afterwards.
func RequestPlanVerb(ctx context.Context, c client.Client, plan *v1alpha1.RemediationPlan, control v1alpha1.PlanControl, dryRun bool) error {
	shown := plan.Spec.Control
	return Submit(ctx, c, "it", plan, func(p *v1alpha1.RemediationPlan) (map[string]any, error) {
		if p.Spec.Control != shown {
			return nil, &PlanSupersededError{Control: p.Spec.Control}
		}
		if refused := RefusePlanVerb(control.Verb, p); refused != nil {
			return nil, refused
		}
		return controlPatch(control), nil
	}, patchOptions(dryRun)...)
}

// controlPatch resumes by taking the verb away; it names whoever did that.
func controlPatch(control v1alpha1.PlanControl) map[string]any {
	return map[string]any{"spec": map[string]any{"control": map[string]any{
		"verb": orNull(string(control.Verb)), "requestedBy": control.RequestedBy, "reason": orNull(control.Reason),
	}}}
}
