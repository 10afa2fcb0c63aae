// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// D17 of the review of remediation: a cancellation during a healthy rollout counted as a failure.
func TestAStepThatACancellationEndedIsToldToTheLedgersAsStopped(t *testing.T) {
	for name, test := range map[string]struct {
		reason v1alpha1.StepReason
		want   v1alpha1.LedgerOutcome
	}{
		"a step of a plan that was ended": {v1alpha1.ReasonStopped, v1alpha1.LedgerStopped},
		"a step that was not healthy":     {v1alpha1.ReasonUnhealthy, v1alpha1.LedgerFailed},
		"a step whose target moved":       {v1alpha1.ReasonTargetMoved, v1alpha1.LedgerFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepFailed)
			s.Plan.Status.Steps[0].Reason = test.reason
			if diff := cmp.Diff(Effect(Settle{0, test.want}), Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

// An executor died between the grant of a place and the status that tells of it, and the plan
// waits: nothing gave that place back as long as the plan waited.
func TestAPlaceOfAnExecutorThatDiedIsGivenBackWhileItsPlanWaits(t *testing.T) {
	tests := map[string]struct {
		state v1alpha1.StepState
		epoch int64
		want  Leftover
	}{
		"a place of an earlier executor":              {v1alpha1.StepPlanned, 1, GiveBack},
		"a place of the executor that has the plan":   {v1alpha1.StepPlanned, 2, Keep},
		"a place that the status tells of":            {v1alpha1.StepReserved, 1, Keep},
		"a place of a step that is about to write":    {v1alpha1.StepIntent, 1, Keep},
		"a place of a step that has written":          {v1alpha1.StepApplied, 1, Keep},
		"a place of a step that has ended, unsettled": {v1alpha1.StepSkipped, 1, Keep},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := running(test.state).Plan
			plan.Status.Epoch = 2
			entry := &v1alpha1.LedgerEntry{StepReference: v1alpha1.StepReference{PlanUID: string(plan.UID)}, Epoch: test.epoch}
			if got, _ := LeftoverOf(plan, entry); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestAnEntryOfALedgerEndsWithItsStep(t *testing.T) {
	tests := map[string]struct {
		state   v1alpha1.StepState
		settled v1alpha1.Toggle
		entry   v1alpha1.StepReference
		want    Leftover
		outcome v1alpha1.LedgerOutcome
	}{
		"a step that is under way":           {v1alpha1.StepIntent, "", v1alpha1.StepReference{PlanUID: "plan-uid"}, Keep, ""},
		"a step that has applied":            {v1alpha1.StepApplied, v1alpha1.Enabled, v1alpha1.StepReference{PlanUID: "plan-uid"}, Keep, ""},
		"a step that has ended, untold":      {v1alpha1.StepVerified, "", v1alpha1.StepReference{PlanUID: "plan-uid"}, Keep, ""},
		"a success that was told":            {v1alpha1.StepVerified, v1alpha1.Enabled, v1alpha1.StepReference{PlanUID: "plan-uid"}, Count, v1alpha1.LedgerSucceeded},
		"a failure that was told":            {v1alpha1.StepFailed, v1alpha1.Enabled, v1alpha1.StepReference{PlanUID: "plan-uid"}, Count, v1alpha1.LedgerFailed},
		"a step that was skipped":            {v1alpha1.StepSkipped, v1alpha1.Enabled, v1alpha1.StepReference{PlanUID: "plan-uid"}, GiveBack, ""},
		"a step that was fenced":             {v1alpha1.StepFenced, v1alpha1.Enabled, v1alpha1.StepReference{PlanUID: "plan-uid"}, GiveBack, ""},
		"a step of another plan of the name": {v1alpha1.StepIntent, "", v1alpha1.StepReference{PlanUID: "other"}, Count, v1alpha1.LedgerFailed},
		"a step that the plan does not have": {v1alpha1.StepIntent, "", v1alpha1.StepReference{PlanUID: "plan-uid", Step: 1}, Count, v1alpha1.LedgerFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := running(test.state).Plan
			plan.Status.Steps[0].Settled = test.settled
			entry := &v1alpha1.LedgerEntry{StepReference: test.entry, Epoch: plan.Status.Epoch}
			if got, outcome := LeftoverOf(plan, entry); got != test.want || outcome != test.outcome {
				t.Errorf("got %d %q, want %d %q", got, outcome, test.want, test.outcome)
			}
		})
	}
	if got, outcome := LeftoverOf(nil, &v1alpha1.LedgerEntry{}); got != Count || outcome != v1alpha1.LedgerFailed {
		t.Errorf("of a plan that is gone: got %d %q", got, outcome)
	}
}
