// SPDX-License-Identifier: Apache-2.0

package wording

import (
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Verb has the words for a request about a plan or a release.
type Verb struct {
	// Short is one line, and Long has paragraphs of several lines.
	Short, Long string
}

// Paragraphs returns each paragraph of the long text as one line.
func (v Verb) Paragraphs() []string {
	paragraphs := strings.Split(v.Long, "\n\n")
	for i := range paragraphs {
		paragraphs[i] = strings.ReplaceAll(paragraphs[i], "\n", " ")
	}
	return paragraphs
}

// PlanVerbs are the requests about plans.
var PlanVerbs = map[v1alpha1.PlanVerb]Verb{
	v1alpha1.PlanExecute: {
		Short: "Begin plans that wait, within the limits",
		Long: `Ask the executor to begin plans that wait for a person (trigger Manual), for their
time, or for the schedule of their policy. Limits, halts and health checks still hold:
a plan that they hold back reports that, and goes on later.

A paused plan goes on.`,
	},
	v1alpha1.PlanPause: {
		Short: "Begin no further step of plans",
		Long: `Ask the executor to begin no further step. The plan is Paused only when no write is
under way any more. Completed writes stay.`,
	},
	actions.PlanResume: {
		Short: "Go on with paused plans",
		Long: `Take a pause back: the plan goes on as its policy says. One that begins by hand
alone (trigger Manual) goes on with "plan execute".`,
	},
	v1alpha1.PlanCancel: {
		Short: "End plans; no write follows",
		Long: `Ask the executor to end plans. A plan is Canceled only when it is certain that no
write of the plan can be stored any more. After a creation with a lost answer
that takes a minute. Completed writes stay. A cancellation is final, and the policy
leaves this very drift alone from then on.`,
	},
}

// ReleaseVerbs are the requests about releases.
var ReleaseVerbs = map[v1alpha1.RolloutVerb]Verb{
	"Start": {
		Short: "Start a run that waits for a person",
		Long:  `Start a run that waits for a person, because spec.rollout.start is Manual.`,
	},
	"Advance": {
		Short: "Go on to the next stage, or to a later one",
		Long: `Go on to the next stage, or to a later one; stages between are skipped. A run goes
forward alone, and stops at each stage that needs an approval.`,
	},
	"Approve": {
		Short: "Approve the stage under way",
		Long: `Approve the stage under way, which then goes on when it has passed. It takes the verb
approve on the release. Where spec.rollout.approval is NotAuthor, the author of the run
cannot approve it.`,
	},
	"Skip": {
		Short: "Skip the stage under way, or the cohort check",
		Long: `Skip the stage under way, against any verdict of the judge, or the cohort check before
the first stage. It takes the verb skip on the release.`,
	},
	"Promote": {
		Short: "Give all requests to a variation",
		Long: `Give all requests to a variation: to the canary, against any verdict of the judge, or to
the active one, which ends the run without blame. It takes the verb promote on the release.`,
	},
	"Rollback": {
		Short: "Return all requests to the active variation",
		Long: `Return all requests to the active variation at once. The revision is remembered as
bad: no run takes it up until a person retries it.`,
	},
	"Retry": {
		Short: "Try a failed stage, a refused work or a rejected revision again",
		Long: `Measure a failed stage again, ask the executor again for a work that was refused or
failed, or begin a run with the revision that was rolled back. That takes the verb retry
on the release.`,
	},
}

// The words of the pause of a release.
var (
	ReleasePause  = Verb{Short: "Keep a run from going forward", Long: "Keep a run from going forward. A failure still rolls back."}
	ReleaseResume = Verb{Short: "Let a paused run go on", Long: "Let a paused run go on."}
)

// Lift has the words for the end of a quarantine.
var Lift = Verb{
	Short: "End the quarantine of an object",
	Long: `Ask proxies to send an object new requests again. The object stays as it is, and
drifted. The policy that put it into quarantine leaves this drift alone from then on.

Users that may accept the state of an object may lift its quarantine. The quarantine
also ends by itself when the object is in sync again, and when its state is accepted.`,
}

// DescribePlanStanding says, as a clause about a plan, that it is as a verb wants it.
func DescribePlanStanding(standing actions.PlanStanding) string {
	switch standing.Reason {
	case actions.PlanIsCanceled:
		return "is canceled already"
	case actions.PlanIsPaused:
		return "is paused already, by " + NameActor(standing.By)
	case actions.PlanIsToBeExecuted:
		return "is to be executed already, as " + NameActor(standing.By) + " asked"
	case actions.PlanIsRunning:
		return "is running already"
	default:
		return string(standing.Reason)
	}
}
