// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// planVerb is one thing that a person may ask of a plan.
type planVerb struct {
	name string
	verb v1alpha1.PlanVerb
	done string // the participle, for results
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
		name: "resume", verb: actions.PlanResume, done: "resumed",
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

// planStandingWords tells that a plan is as the verb wants it.
func planStandingWords(standing actions.PlanStanding) string {
	switch standing.Reason {
	case actions.PlanIsCanceled:
		return "is canceled already"
	case actions.PlanIsPaused:
		return "is paused already, by " + actorName(standing.By)
	case actions.PlanIsToBeExecuted:
		return "is to be executed already, as " + actorName(standing.By) + " asked"
	case actions.PlanIsRunning:
		return "is running already"
	default:
		return string(standing.Reason)
	}
}

// planRefusalWords tells why a verb makes no sense for a plan.
func (a *app) planRefusalWords(refused *actions.PlanRefusedError) string {
	switch refused.Reason {
	case actions.PlanHasEnded:
		words := fmt.Sprintf("it has ended as %s", refused.Phase)
		if !refused.At.IsZero() {
			words += " " + a.ago(metav1.NewTime(refused.At))
		}
		return words
	case actions.PlanIsToBeCanceled:
		return actorName(refused.By) + " has asked to cancel it, and that is not taken back"
	case actions.PlanIsEnding:
		return fmt.Sprintf("it is ending as %s", refused.Phase)
	case actions.PlanIsNotPaused:
		return "it is not paused"
	default:
		return refused.Error()
	}
}

// wordPlanError gives the errors of a request the plugin's words.
func (a *app) wordPlanError(err error) error {
	if superseded, is := errors.AsType[*actions.PlanSupersededError](err); is {
		return errors.New(controlWords(superseded.Control) + " since it was shown")
	}
	if refused, is := errors.AsType[*actions.PlanRefusedError](err); is {
		return errors.New(a.planRefusalWords(refused))
	}
	return err
}

// outcomeWords tells what became of a verb, whose participle is done.
func outcomeWords(done string, o actions.PlanOutcome) string {
	switch o.Reason {
	case actions.PlanWasDeleted:
		return "it was deleted meanwhile"
	case actions.PlanWasCanceled:
		return "canceled"
	case actions.PlanWasPaused:
		return "paused"
	case actions.PlanEndedBefore:
		return fmt.Sprintf("it ended as %s before", o.Phase)
	case actions.PlanEndedSince:
		return fmt.Sprintf("%s, and ended as %s", done, o.Phase)
	case actions.PlanSuperseded:
		return controlWords(o.Control) + " since"
	case actions.PlanRuns:
		return done + ": " + runningWords(o.Deferral)
	case actions.PlanWaits:
		return fmt.Sprintf("%s; it waits: %s", done, o.Deferral)
	default:
		return string(o.Reason)
	}
}

func runningWords(deferral string) string {
	if deferral != "" {
		return "Running, and waits: " + deferral
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
