// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// verb is one thing that a person may ask of a plan.
type verb struct {
	name string
	asks v1alpha1.PlanVerb
	done string // the participle, for results
	// short, long and examples are the command's help.
	short, long, examples string
}

var (
	executeVerb = verb{
		name: "execute", asks: v1alpha1.PlanExecute, done: "executed",
		short: "Begin plans that wait, within the limits",
		long: `Ask the executor to begin plans that wait for a person (trigger Manual), for their
time, or for the schedule of their policy. Limits, halts and health checks still hold:
a plan that they hold back reports that, and goes on later.

A paused plan goes on.`,
		examples: invocation.Examples(
			"# Begin a plan of a policy with the trigger Manual", "%s plan execute production-3f9c2a --reason 'agreed in the review'"),
	}
	pauseVerb = verb{
		name: "pause", asks: v1alpha1.PlanPause, done: "paused",
		short: "Begin no further step of plans",
		long: `Ask the executor to begin no further step. The plan is Paused only when no write is
under way any more. Completed writes stay.`,
		examples: invocation.Examples(
			"# Pause a plan until a person resumes it", "%s plan pause production-3f9c2a --reason 'INC-9: looking into it'"),
	}
	resumeVerb = verb{
		name: "resume", asks: actions.PlanResume, done: "resumed",
		short: "Go on with paused plans",
		long: `Take a pause back: the plan goes on as its policy says. One that begins by hand
alone (trigger Manual) goes on with "plan execute".`,
		examples: invocation.Examples("# Go on", "%s plan resume production-3f9c2a"),
	}
	cancelVerb = verb{
		name: "cancel", asks: v1alpha1.PlanCancel, done: "canceled",
		short: "End plans; no write follows",
		long: `Ask the executor to end plans. A plan is Canceled only when it is certain that no
write of the plan can be stored any more. After a creation with a lost answer
that takes a minute. Completed writes stay. A cancellation is final, and the policy
leaves this very drift alone from then on.`,
		examples: invocation.Examples(
			"# End a plan and see that it has ended", "%s plan cancel production-3f9c2a --wait 2m",
			"# End all plans of the namespace that have not ended", "%s plan cancel $(kubectl plumbline plan list --phase Running,Deferred,Scheduled,Paused -o jsonpath='{.items[*].metadata.name}')"),
	}
)

// standingWords tells that a plan is as the verb wants it.
func standingWords(standing actions.PlanStanding) string {
	switch standing.Reason {
	case actions.PlanIsCanceled:
		return "is canceled already"
	case actions.PlanIsPaused:
		return "is paused already, by " + wording.NameActor(standing.By)
	case actions.PlanIsToBeExecuted:
		return "is to be executed already, as " + wording.NameActor(standing.By) + " asked"
	case actions.PlanIsRunning:
		return "is running already"
	default:
		return string(standing.Reason)
	}
}

// refusalWords tells why a verb makes no sense for a plan.
func (a *app) refusalWords(refused *actions.PlanRefusedError) string {
	switch refused.Reason {
	case actions.PlanHasEnded:
		words := fmt.Sprintf("it has ended as %s", refused.Phase)
		if !refused.At.IsZero() {
			words += " " + a.FormatAgo(metav1.NewTime(refused.At))
		}
		return words
	case actions.PlanIsToBeCanceled:
		return wording.NameActor(refused.By) + " has asked to cancel it, and that is not taken back"
	case actions.PlanIsEnding:
		return fmt.Sprintf("it is ending as %s", refused.Phase)
	case actions.PlanIsNotPaused:
		return "it is not paused"
	default:
		return refused.Error()
	}
}

// wordError gives the errors of a request the plugin's words.
func (a *app) wordError(err error) error {
	if superseded, is := errors.AsType[*actions.PlanSupersededError](err); is {
		return errors.New(remediation.DescribeControl(superseded.Control) + " since it was shown")
	}
	if refused, is := errors.AsType[*actions.PlanRefusedError](err); is {
		return errors.New(a.refusalWords(refused))
	}
	return err
}
