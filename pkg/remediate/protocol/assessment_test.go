// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An autoscaler scaled a target whose pods were rolling, and the step failed as TargetMoved: the
// executor looked before the assessor had masked the replicas.
func TestAChangeThatTheAssessorHasNotSeenMovesNoTarget(t *testing.T) {
	const wait = "wait 2s: it changed, and the assessor has not looked at the change yet"
	tests := map[string]struct {
		state    v1alpha1.StepState
		after    time.Duration
		assessed bool
		want     string
	}{
		"a step that was written waits for the assessor": {v1alpha1.StepApplied, 0, false, wait},
		"it waits until its target has to be ready":      {v1alpha1.StepApplied, 10*time.Minute - time.Second, false, "wait 10m0s: it changed, and the assessor has not looked at the change yet"},
		"it waits no longer":                             {v1alpha1.StepApplied, 10 * time.Minute, false, "store Running, step Failed TargetMoved"},
		"it fails when the assessor has looked":          {v1alpha1.StepApplied, 0, true, "store Running, step Failed TargetMoved"},
		"a step whose write has no answer waits":         {v1alpha1.StepIntent, 0, false, wait},
		"it waits ten seconds after the intent":          {v1alpha1.StepIntent, 10 * time.Second, false, "store Running, step Failed TargetMoved"},
		"it fails at once when the assessor has looked":  {v1alpha1.StepIntent, 0, true, "store Running, step Failed TargetMoved"},
		"a step that has a place waits":                  {v1alpha1.StepReserved, 0, false, wait},
		"it waits ten seconds after the grant":           {v1alpha1.StepReserved, 10 * time.Second, false, "store Running, step Skipped TargetMoved"},
		"it is skipped when the assessor has looked":     {v1alpha1.StepReserved, 0, true, "store Running, step Skipped TargetMoved"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			s.Now = epoch.Add(test.after)
			s.Health.Timeout = 10 * time.Minute
			s.Plan.Status.Steps[0].StartTime = at(0)
			target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "12", Generation: 3, Hash: "pl1:other", Ready: Yes, Unassessed: !test.assessed}
			s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Target: &target}}
			if got := text(Next(s)); got != test.want {
				t.Errorf("next is %q, want %q", got, test.want)
			}
		})
	}
}

func TestAStepWithoutTheTimeOfItsGrantWaitsForNoAssessor(t *testing.T) {
	s := running(v1alpha1.StepReserved)
	s.Facts.Steps = map[int32]StepFacts{0: {Authorized: Yes, Target: &Target{Read: Yes, UID: "uid-0", Hash: "pl1:other", Unassessed: true}}}
	if got, want := text(Next(s)), "store Running, step Skipped TargetMoved"; got != want {
		t.Errorf("next is %q, want %q", got, want)
	}
}
