// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// planIn is a plan in a phase, as a user has asked it; change alters it.
func planIn(phase v1alpha1.PlanPhase, verb v1alpha1.PlanVerb, change ...func(*v1alpha1.RemediationPlan)) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{Status: v1alpha1.RemediationPlanStatus{Phase: phase}}
	if verb != "" {
		p.Spec.Control = v1alpha1.PlanControl{Verb: verb, RequestedBy: "bob"}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

const execute, pause, cancel = v1alpha1.PlanExecute, v1alpha1.PlanPause, v1alpha1.PlanCancel

func waiting(why string) func(*v1alpha1.RemediationPlan) {
	return func(p *v1alpha1.RemediationPlan) { p.Status.DeferralReason = why }
}

func endingAs(phase v1alpha1.PlanPhase) func(*v1alpha1.RemediationPlan) {
	return func(p *v1alpha1.RemediationPlan) { p.Status.EndingAs = phase }
}

func TestFindPlanStanding(t *testing.T) {
	for name, tc := range map[string]struct {
		verb v1alpha1.PlanVerb
		plan *v1alpha1.RemediationPlan
		want PlanStandingReason // empty: it is not as the verb wants it
	}{
		"a canceled plan is canceled":                      {cancel, planIn(v1alpha1.PlanCanceled, ""), PlanIsCanceled},
		"one that is to be canceled is not yet":            {cancel, planIn(v1alpha1.PlanRunning, cancel), ""},
		"one that failed is not":                           {cancel, planIn(v1alpha1.PlanFailed, ""), ""},
		"a plan that a user paused is paused":              {pause, planIn(v1alpha1.PlanPaused, pause), PlanIsPaused},
		"one that paused by itself can be paused for good": {pause, planIn(v1alpha1.PlanPaused, ""), ""},
		"one that is to be paused is not yet":              {pause, planIn(v1alpha1.PlanRunning, pause), ""},
		"a plan that runs is running":                      {execute, planIn(v1alpha1.PlanRunning, ""), PlanIsRunning},
		"one that runs and waits can be executed":          {execute, planIn(v1alpha1.PlanRunning, "", waiting("a delay")), ""},
		"one that is to be executed is so":                 {execute, planIn(v1alpha1.PlanDeferred, execute), PlanIsToBeExecuted},
		"one that was executed and has ended is not":       {execute, planIn(v1alpha1.PlanSucceeded, execute), ""},
		"a resumed plan is never resumed already":          {PlanResume, planIn(v1alpha1.PlanRunning, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, already := FindPlanStanding(tc.verb, tc.plan)
			if got.Reason != tc.want || already != (tc.want != "") || got.By != tc.plan.Spec.Control.RequestedBy {
				t.Errorf("got %+v, %t, want %q", got, already, tc.want)
			}
		})
	}
}

func TestRefusePlanVerb(t *testing.T) {
	ended := metav1.NewTime(noon)
	at := func(p *v1alpha1.RemediationPlan) { p.Status.CompletionTime = &ended }
	for name, tc := range map[string]struct {
		verb v1alpha1.PlanVerb
		plan *v1alpha1.RemediationPlan
		want *PlanRefusedError
	}{
		"a plan that runs can be paused":               {verb: pause, plan: planIn(v1alpha1.PlanRunning, "")},
		"a plan that runs can be canceled":             {verb: cancel, plan: planIn(v1alpha1.PlanRunning, "")},
		"a plan that nobody has taken can be executed": {verb: execute, plan: planIn("", "")},
		"a paused plan can be resumed":                 {verb: PlanResume, plan: planIn(v1alpha1.PlanPaused, pause)},
		"one that paused by itself can be resumed":     {verb: PlanResume, plan: planIn(v1alpha1.PlanPaused, "")},
		"a pause that is under way can be taken back":  {verb: PlanResume, plan: planIn(v1alpha1.PlanSealing, pause, endingAs(v1alpha1.PlanPaused))},
		"a plan that is ending can be canceled":        {verb: cancel, plan: planIn(v1alpha1.PlanSealing, "", endingAs(v1alpha1.PlanFailed))},
		"one that has ended can be asked nothing":      {pause, planIn(v1alpha1.PlanSucceeded, "", at), &PlanRefusedError{Reason: PlanHasEnded, Phase: v1alpha1.PlanSucceeded, At: noon}},
		"nor be canceled":                              {cancel, planIn(v1alpha1.PlanFailed, ""), &PlanRefusedError{Reason: PlanHasEnded, Phase: v1alpha1.PlanFailed}},
		"a cancellation is not taken back":             {PlanResume, planIn(v1alpha1.PlanRunning, cancel), &PlanRefusedError{Reason: PlanIsToBeCanceled, By: "bob"}},
		"a plan that is ending cannot be executed":     {execute, planIn(v1alpha1.PlanSealing, "", endingAs(v1alpha1.PlanCanceled)), &PlanRefusedError{Reason: PlanIsEnding, Phase: v1alpha1.PlanCanceled}},
		"a plan that is not paused cannot be resumed":  {PlanResume, planIn(v1alpha1.PlanRunning, ""), &PlanRefusedError{Reason: PlanIsNotPaused}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, RefusePlanVerb(tc.verb, tc.plan)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgePlanVerb(t *testing.T) {
	seen := func(p *v1alpha1.RemediationPlan) { p.Status.ObservedGeneration = 2 }
	taken := func(reason PlanReason) PlanOutcome { return PlanOutcome{Progress: Taken, Reason: reason} }
	for name, tc := range map[string]struct {
		verb    v1alpha1.PlanVerb
		plan    *v1alpha1.RemediationPlan
		asked   v1alpha1.PlanVerb // stored with the request
		deleted bool
		want    PlanOutcome
	}{
		"a deleted plan":                               {verb: pause, plan: planIn(v1alpha1.PlanPaused, pause), asked: pause, deleted: true, want: PlanOutcome{Progress: Refused, Reason: PlanWasDeleted}},
		"a cancellation that is done":                  {verb: cancel, plan: planIn(v1alpha1.PlanCanceled, cancel), asked: cancel, want: taken(PlanWasCanceled)},
		"a cancellation that is under way":             {verb: cancel, plan: planIn(v1alpha1.PlanSealing, cancel, seen), asked: cancel},
		"a cancellation that came too late":            {verb: cancel, plan: planIn(v1alpha1.PlanSucceeded, cancel), asked: cancel, want: PlanOutcome{Progress: Refused, Reason: PlanEndedBefore, Phase: v1alpha1.PlanSucceeded}},
		"a pause that is done":                         {verb: pause, plan: planIn(v1alpha1.PlanPaused, pause), asked: pause, want: taken(PlanWasPaused)},
		"a pause that is under way":                    {verb: pause, plan: planIn(v1alpha1.PlanRunning, pause, seen), asked: pause},
		"a pause that came too late":                   {verb: pause, plan: planIn(v1alpha1.PlanFailed, pause), asked: pause, want: PlanOutcome{Progress: Refused, Reason: PlanEndedBefore, Phase: v1alpha1.PlanFailed}},
		"a pause that another user turned into an end": {verb: pause, plan: planIn(v1alpha1.PlanRunning, cancel), asked: pause, want: PlanOutcome{Progress: Refused, Reason: PlanSuperseded, Control: v1alpha1.PlanControl{Verb: cancel, RequestedBy: "bob"}}},
		"an execution that nobody has looked at":       {verb: execute, plan: planIn(v1alpha1.PlanRunning, execute), asked: execute},
		"an execution that runs":                       {verb: execute, plan: planIn(v1alpha1.PlanRunning, execute, seen), asked: execute, want: taken(PlanRuns)},
		"an execution that runs and waits":             {verb: execute, plan: planIn(v1alpha1.PlanRunning, execute, seen, waiting("a delay")), asked: execute, want: PlanOutcome{Progress: Taken, Reason: PlanRuns, Deferral: "a delay"}},
		"an execution that a window holds back":        {verb: execute, plan: planIn(v1alpha1.PlanDeferred, execute, seen, waiting("the window")), asked: execute, want: PlanOutcome{Progress: Taken, Reason: PlanWaits, Deferral: "the window"}},
		"an execution that has not begun":              {verb: execute, plan: planIn(v1alpha1.PlanCreated, execute, seen), asked: execute},
		"an execution that has ended":                  {verb: execute, plan: planIn(v1alpha1.PlanFailed, execute), asked: execute, want: PlanOutcome{Progress: Taken, Reason: PlanEndedSince, Phase: v1alpha1.PlanFailed}},
		"a plan that goes on":                          {verb: PlanResume, plan: planIn(v1alpha1.PlanScheduled, "", seen, waiting("tonight")), want: PlanOutcome{Progress: Taken, Reason: PlanWaits, Deferral: "tonight"}},
		"a plan that is paused still":                  {verb: PlanResume, plan: planIn(v1alpha1.PlanPaused, "", seen)},
	} {
		t.Run(name, func(t *testing.T) {
			asked := planIn("", tc.asked)
			asked.Generation = 2
			if diff := cmp.Diff(tc.want, JudgePlanVerb(tc.verb, tc.plan, asked, tc.deleted)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
