// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// planVerb is one thing that a person may ask of a plan.
type planVerb struct {
	name string
	verb v1alpha1.PlanVerb // none resumes
	done string            // the participle, for results
	// short, long and examples are the command's help.
	short, long, examples string
}

var (
	executeVerb = planVerb{
		name: "execute", verb: v1alpha1.PlanExecute, done: "executed",
		short: "Begin plans that wait, within the limits",
		long: `Ask the executor to begin plans that wait for somebody (trigger Manual), for their
time, or for the schedule of their policy. Limits, brakes and health hold as ever:
a plan that they hold back says so and goes on when they let it.

A paused plan goes on.`,
		examples: examples(
			"# Begin a plan of a policy whose trigger is Manual", "%s plan execute production-3f9c2a --reason 'agreed in the review'"),
	}
	pauseVerb = planVerb{
		name: "pause", verb: v1alpha1.PlanPause, done: "paused",
		short: "Begin no further step of plans",
		long: `Ask the executor to begin no further step. It is told as Paused only when no
write is under way any more. What has been written stays.`,
		examples: examples(
			"# Nothing more of this plan until somebody resumes it", "%s plan pause production-3f9c2a --reason 'INC-9: looking into it'"),
	}
	resumeVerb = planVerb{
		name: "resume", done: "resumed",
		short: "Go on with paused plans",
		long: `Take a pause back: the plan goes on as its policy says. One that begins by hand
alone (trigger Manual) goes on with "plan execute".`,
		examples: examples("# Go on", "%s plan resume production-3f9c2a"),
	}
	cancelVerb = planVerb{
		name: "cancel", verb: v1alpha1.PlanCancel, done: "canceled",
		short: "End plans; no write follows",
		long: `Ask the executor to end plans. Canceled is told only when it is certain that no
write of the plan can be stored any more; after a creation whose answer was lost
that takes a minute. What has been written stays. A cancellation is not taken
back, and the policy leaves this very drift alone from then on.`,
		examples: examples(
			"# End a plan and see that it has ended", "%s plan cancel production-3f9c2a --wait 2m",
			"# End all plans of the namespace that have not ended", "%s plan cancel $(kubectl plumbline plan list --phase Running,Deferred,Scheduled,Paused -o jsonpath='{.items[*].metadata.name}')"),
	}
)

// already says that a plan is as the verb wants it; empty when it is not.
func (v planVerb) already(p *v1alpha1.RemediationPlan) string {
	control := p.Spec.Control
	switch v.verb {
	case v1alpha1.PlanCancel:
		if p.Status.Phase == v1alpha1.PlanCanceled {
			return "is canceled already"
		}
	case v1alpha1.PlanPause:
		if p.Status.Phase == v1alpha1.PlanPaused && control.Verb == v1alpha1.PlanPause {
			return "is paused already, by " + actorName(control.RequestedBy)
		}
	case v1alpha1.PlanExecute:
		if !planEnded(p) && control.Verb == v1alpha1.PlanExecute {
			return "is to be executed already, as " + actorName(control.RequestedBy) + " asked"
		}
		if p.Status.Phase == v1alpha1.PlanRunning && p.Status.DeferralReason == "" && control.Verb == "" {
			return "is running already"
		}
	}
	return ""
}

// refuses says why a verb makes no sense for a plan; empty when it does.
func (a *app) refuses(v planVerb, p *v1alpha1.RemediationPlan) string {
	control := p.Spec.Control
	switch {
	case planEnded(p):
		words := fmt.Sprintf("it has ended as %s", p.Status.Phase)
		if at := p.Status.CompletionTime; at != nil {
			words += " " + a.ago(*at)
		}
		return words
	case v.verb == v1alpha1.PlanCancel:
		return ""
	case control.Verb == v1alpha1.PlanCancel:
		return actorName(control.RequestedBy) + " has asked to cancel it, and that is not taken back"
	case p.Status.Phase == v1alpha1.PlanSealing && p.Status.EndingAs != v1alpha1.PlanPaused:
		return fmt.Sprintf("it is ending as %s", p.Status.EndingAs)
	case v.verb == "" && control.Verb != v1alpha1.PlanPause && p.Status.Phase != v1alpha1.PlanPaused:
		return "it is not paused"
	}
	return ""
}

// settlement judges whether the executor has done what was asked of the plan;
// asked is the plan as it was stored with the request.
func (v planVerb) settlement(p, asked *v1alpha1.RemediationPlan, deleted bool) (settled, string) {
	switch {
	case deleted:
		return settleRefused, "it was deleted meanwhile"
	case v.verb == v1alpha1.PlanCancel && p.Status.Phase == v1alpha1.PlanCanceled:
		return settleTaken, "canceled"
	case planEnded(p) && (v.verb == v1alpha1.PlanCancel || v.verb == v1alpha1.PlanPause):
		return settleRefused, fmt.Sprintf("it ended as %s before", p.Status.Phase)
	case planEnded(p):
		return settleTaken, fmt.Sprintf("%s, and ended as %s", v.done, p.Status.Phase)
	case p.Spec.Control != asked.Spec.Control:
		return settleRefused, controlWords(p.Spec.Control) + " since"
	case v.verb == v1alpha1.PlanCancel:
		return settlePending, ""
	case v.verb == v1alpha1.PlanPause:
		if p.Status.Phase == v1alpha1.PlanPaused {
			return settleTaken, "paused"
		}
		return settlePending, ""
	}
	return v.underWay(p, asked)
}

// underWay judges execute and resume: the plan must have been looked at since, and
// go on or say what holds it back.
func (v planVerb) underWay(p, asked *v1alpha1.RemediationPlan) (settled, string) {
	if p.Status.ObservedGeneration < asked.Generation {
		return settlePending, ""
	}
	switch p.Status.Phase {
	case v1alpha1.PlanRunning:
		return settleTaken, v.done + ": " + runningWords(p)
	case v1alpha1.PlanDeferred, v1alpha1.PlanScheduled:
		return settleTaken, fmt.Sprintf("%s; it waits: %s", v.done, p.Status.DeferralReason)
	default:
		return settlePending, ""
	}
}

func runningWords(p *v1alpha1.RemediationPlan) string {
	if p.Status.DeferralReason != "" {
		return "Running, and waits: " + p.Status.DeferralReason
	}
	return "Running"
}

// controlWords tells what somebody else has asked of a plan.
func controlWords(control v1alpha1.PlanControl) string {
	who := actorName(control.RequestedBy)
	switch control.Verb {
	case v1alpha1.PlanExecute:
		return who + " has asked to execute it"
	case v1alpha1.PlanPause:
		return who + " has asked to pause it"
	case v1alpha1.PlanCancel:
		return who + " has asked to cancel it"
	case "":
		return who + " has resumed it"
	default:
		return fmt.Sprintf("%s has asked to %s it", who, control.Verb)
	}
}
