// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Each case is one fact that ends a step, beside facts that would let it write.
func TestOneFactKeepsAStepFromItsWrite(t *testing.T) {
	tests := map[string]struct {
		state  v1alpha1.StepState
		change func(*State, *StepFacts)
		want   string
	}{
		"nothing keeps it, and it is intended": {v1alpha1.StepReserved, func(*State, *StepFacts) {}, "Intent"},
		"its body is damaged":                  {v1alpha1.StepReserved, func(_ *State, f *StepFacts) { f.Revision = No }, "Skipped RevisionDamaged"},
		"its write leads elsewhere":            {v1alpha1.StepReserved, func(_ *State, f *StepFacts) { f.Tried.Hash = "pl1:other" }, "Skipped WouldNotConverge"},
		"nothing keeps it, and it begins":      {v1alpha1.StepPlanned, func(*State, *StepFacts) {}, "Reserved"},
		"its ledger says that it has ended": {
			v1alpha1.StepPlanned, func(_ *State, f *StepFacts) { f.Place = &Place{Granted: No, Ended: true} }, "Failed Stopped",
		},
		"the time of its plan is over": {v1alpha1.StepPlanned, func(s *State, _ *StepFacts) { s.Plan.Spec.Plan.DeadlineTime = *at(0) }, "Skipped DeadlineExceeded"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(test.state)
			facts := fit()
			test.change(s, &facts)
			s.Facts.Steps = map[int32]StepFacts{0: facts}
			if got := ends(Next(s)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// fit are facts that let a step write.
func fit() StepFacts {
	return StepFacts{
		Authorized: Yes, Mirror: &Place{Granted: Yes}, Place: &Place{Granted: Yes}, Claimed: Yes, Revision: Yes,
		Target: &Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash},
		Tried:  &Write{Result: Stored, Hash: desiredHash},
	}
}

// An executor that takes a plan over finds an intent that was not stored, and a fact that
// keeps the step from its write. The step is fenced, and then ends for that reason.
func TestAnIntentIsNotRepeatedAgainstAFactThatIsNew(t *testing.T) {
	tests := map[string]struct {
		change func(*State, *StepFacts)
		want   string
	}{
		"nothing is new":                     {func(*State, *StepFacts) {}, "Intent"},
		"its target is being deleted":        {func(_ *State, f *StepFacts) { f.Target.Ending = true }, "Skipped Terminating"},
		"its target is not wanted any more":  {func(_ *State, f *StepFacts) { f.Target.Unwanted = "a guard is suspended" }, "Skipped TargetMoved"},
		"the time of its plan is over":       {func(s *State, _ *StepFacts) { s.Plan.Spec.Plan.DeadlineTime = *at(0) }, "Skipped DeadlineExceeded"},
		"its write leads elsewhere now":      {func(_ *State, f *StepFacts) { f.Tried.Hash = "pl1:other" }, "Skipped WouldNotConverge"},
		"its body is damaged":                {func(_ *State, f *StepFacts) { f.Revision = No }, "Skipped RevisionDamaged"},
		"its requester has no right to it":   {func(_ *State, f *StepFacts) { f.Authorized = No }, "Skipped NotAllowed"},
		"it was tried as often as it may be": {func(s *State, _ *StepFacts) { s.Plan.Status.Steps[0].Attempts = maxAttempts - 1 }, "Skipped Contended"},
	}
	for name, test := range tests {
		for _, fenced := range []bool{false, true} {
			s := running(v1alpha1.StepIntent)
			s.Plan.Status.Epoch = 2
			want := test.want
			if fenced {
				s.Plan.Status.Steps[0].Fence = "10"
			} else if want != "Intent" {
				want = "protocol.FenceTarget {0}"
			}
			facts := fit()
			test.change(s, &facts)
			s.Facts.Steps = map[int32]StepFacts{0: facts}
			if got := ends(Next(s)); got != want {
				t.Errorf("%s, fenced %t: got %q, want %q", name, fenced, got, want)
			}
		}
	}
}

func TestAnotherObjectOfTheNameIsNotWhatAStepWrote(t *testing.T) {
	for uid, want := range map[string]string{"uid-0": "Verified", "uid-other": "Failed TargetReplaced"} {
		s := running(v1alpha1.StepApplied)
		s.Plan.Status.Steps[0].HealthyTime = &metav1.Time{Time: epoch.Add(-time.Hour)}
		s.Facts.Steps = map[int32]StepFacts{0: {Target: &Target{Read: Yes, UID: uid, ResourceVersion: "11", Generation: 2, Hash: desiredHash, Ready: Yes}}}
		if got := ends(Next(s)); got != want {
			t.Errorf("%s: got %q, want %q", uid, got, want)
		}
	}
}
