// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"testing"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestDescribeOutcome_SaysTheParticiple(t *testing.T) {
	cases := map[string]struct {
		outcome actions.PlanOutcome
		want    string
	}{
		"a plan that was deleted":        {actions.PlanOutcome{Reason: actions.PlanWasDeleted}, "it was deleted meanwhile"},
		"a plan that was canceled":       {actions.PlanOutcome{Reason: actions.PlanWasCanceled}, "canceled"},
		"a plan that was paused":         {actions.PlanOutcome{Reason: actions.PlanWasPaused}, "paused"},
		"a plan that ended before":       {actions.PlanOutcome{Reason: actions.PlanEndedBefore, Phase: v1alpha1.PlanFailed}, "it ended as Failed before"},
		"a plan that ended since":        {actions.PlanOutcome{Reason: actions.PlanEndedSince, Phase: v1alpha1.PlanSucceeded}, "begun, and ended as Succeeded"},
		"a request of another person":    {actions.PlanOutcome{Reason: actions.PlanSuperseded, Control: v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "bob"}}, "bob has asked to pause it since"},
		"a plan that runs":               {actions.PlanOutcome{Reason: actions.PlanRuns}, "begun: Running"},
		"a plan that runs, and waits":    {actions.PlanOutcome{Reason: actions.PlanRuns, Deferral: "a limit"}, "begun: Running, and waits: a limit"},
		"a plan that waits":              {actions.PlanOutcome{Reason: actions.PlanWaits, Deferral: "a limit"}, "begun; it waits: a limit"},
		"an outcome that is not in here": {actions.PlanOutcome{Reason: "Unheard"}, "Unheard"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := DescribeOutcome("begun", tc.outcome); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
