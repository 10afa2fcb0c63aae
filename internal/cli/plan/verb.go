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
	// The words and the examples are the help of the command.
	wording.Verb
	examples string
}

var (
	executeVerb = verb{
		name: "execute", asks: v1alpha1.PlanExecute, done: "executed",
		Verb: wording.PlanVerbs[v1alpha1.PlanExecute],
		examples: invocation.Examples(
			"# Begin a plan of a policy with the trigger Manual", "%s plan execute production-3f9c2a --reason 'agreed in the review'"),
	}
	pauseVerb = verb{
		name: "pause", asks: v1alpha1.PlanPause, done: "paused",
		Verb: wording.PlanVerbs[v1alpha1.PlanPause],
		examples: invocation.Examples(
			"# Pause a plan until a person resumes it", "%s plan pause production-3f9c2a --reason 'INC-9: looking into it'"),
	}
	resumeVerb = verb{
		name: "resume", asks: actions.PlanResume, done: "resumed",
		Verb:     wording.PlanVerbs[actions.PlanResume],
		examples: invocation.Examples("# Go on", "%s plan resume production-3f9c2a"),
	}
	cancelVerb = verb{
		name: "cancel", asks: v1alpha1.PlanCancel, done: "canceled",
		Verb: wording.PlanVerbs[v1alpha1.PlanCancel],
		examples: invocation.Examples(
			"# End a plan and see that it has ended", "%s plan cancel production-3f9c2a --timeout 2m",
			"# End all plans of the namespace that have not ended", "%s plan cancel --yes $(kubectl plumbline plan list --phase Running,Deferred,Scheduled,Paused -o jsonpath='{.items[*].metadata.name}')"),
	}
)

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
