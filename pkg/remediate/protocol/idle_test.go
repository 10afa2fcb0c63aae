// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// D24 of the review of remediation: each look of a plan that waits for health read policy,
// ledgers, guards and namespaces from the API server.
func TestAPlanLooksAtCachesWhileItOnlyWaits(t *testing.T) {
	const planned, applied, verified = v1alpha1.StepPlanned, v1alpha1.StepApplied, v1alpha1.StepVerified
	tests := map[string]struct {
		phase  v1alpha1.PlanPhase
		first  []v1alpha1.StepState // steps of the present batch
		second []v1alpha1.StepState // steps of the next batch
		idle   bool
	}{
		"it waits for its only target":                 {v1alpha1.PlanRunning, []v1alpha1.StepState{applied}, nil, true},
		"it waits for the last target of two":          {v1alpha1.PlanRunning, []v1alpha1.StepState{verified, applied}, nil, true},
		"it waits before the next batch":               {v1alpha1.PlanRunning, []v1alpha1.StepState{applied}, []v1alpha1.StepState{planned}, true},
		"another step of the batch has not begun":      {v1alpha1.PlanRunning, []v1alpha1.StepState{applied, planned}, nil, false},
		"another step is about to say what it writes":  {v1alpha1.PlanRunning, []v1alpha1.StepState{applied, v1alpha1.StepReserved}, nil, false},
		"another step is about to write":               {v1alpha1.PlanRunning, []v1alpha1.StepState{applied, v1alpha1.StepIntent}, nil, false},
		"a step of the next batch is about to write":   {v1alpha1.PlanRunning, []v1alpha1.StepState{applied}, []v1alpha1.StepState{v1alpha1.StepIntent}, false},
		"the next batch is to begin":                   {v1alpha1.PlanRunning, []v1alpha1.StepState{verified}, []v1alpha1.StepState{planned}, false},
		"all steps have ended":                         {v1alpha1.PlanRunning, []v1alpha1.StepState{verified}, nil, false},
		"it is paused":                                 {v1alpha1.PlanPaused, []v1alpha1.StepState{planned}, nil, true},
		"it is deferred":                               {v1alpha1.PlanDeferred, []v1alpha1.StepState{planned}, nil, false},
		"it is about to end, with a target to look at": {v1alpha1.PlanSealing, []v1alpha1.StepState{applied}, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(append(test.first, test.second...)...)
			s.Plan.Status.Phase, s.Facts.Brakes = test.phase, nil
			steps := s.Plan.Spec.Plan.Batches[0].Steps
			s.Plan.Spec.Plan.Batches = []v1alpha1.PlanBatch{{Order: 0, Steps: steps[:len(test.first)]}, {Order: 1, Steps: steps[len(test.first):]}}
			if diff := cmp.Diff(Effect(Look{Idle: test.idle}), Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}

// A cache may be behind. A step that begins, or writes, needs a live look.
func TestNoStepBeginsAndNoneWritesByWhatACacheSays(t *testing.T) {
	tried := StepFacts{
		Authorized: Yes, Revision: Yes, Tried: &Write{Result: Stored, Hash: desiredHash},
		Target: &Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash},
	}
	for _, state := range []v1alpha1.StepState{v1alpha1.StepPlanned, v1alpha1.StepReserved, v1alpha1.StepIntent} {
		t.Run(string(state), func(t *testing.T) {
			s := running(state)
			s.Facts.Brakes, s.Facts.Steps = &Brakes{Known: true, Cached: true}, map[int32]StepFacts{0: tried}
			if diff := cmp.Diff(Effect(Look{}), Next(s)); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a target is waited for", func(t *testing.T) {
		s := running(v1alpha1.StepApplied)
		s.Facts.Brakes = &Brakes{Known: true, Cached: true}
		if diff := cmp.Diff(Effect(ReadTarget{0}), Next(s)); diff != "" {
			t.Errorf("next (-want +got):\n%s", diff)
		}
	})
}
