// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// PrintResult prints the one line for a plan that kubectl's verbs print.
func PrintResult(inv *invocation.Invocation, p *v1alpha1.RemediationPlan, words string) error {
	return inv.Print(invocation.Printable(wording.PlanName(p)), " ", invocation.Printable(words), "\n")
}

// DescribeStanding tells where a plan stands that has not answered in time.
func DescribeStanding(p *v1alpha1.RemediationPlan) string {
	if p.Status.Phase == "" {
		return "no executor has taken it; is one running?"
	}
	words := "it is " + wording.DescribePhase(p)
	if reason := p.Status.DeferralReason; reason != "" {
		words += ", " + reason
	}
	return words
}

// DescribeOutcome tells the outcome of a verb, whose participle is done.
func DescribeOutcome(done string, o actions.PlanOutcome) string {
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
		return DescribeControl(o.Control) + " since"
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

// DescribeControl tells the request of another person about a plan.
func DescribeControl(control v1alpha1.PlanControl) string {
	who := wording.NameActor(control.RequestedBy)
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
