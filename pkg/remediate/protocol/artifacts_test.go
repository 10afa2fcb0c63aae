// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Who recovers an intent has not read what its write went over, so the intent names that.
func TestAnIntentNamesTheArtifactsOfItsOwnDryRun(t *testing.T) {
	want := v1alpha1.StepArtifacts{Before: "sha256:1", Authorized: "sha256:2", Written: "sha256:3"}
	for name, state := range map[string]v1alpha1.StepState{
		"the first intent": v1alpha1.StepReserved,
		"a later one":      v1alpha1.StepIntent,
	} {
		t.Run(name, func(t *testing.T) {
			s := running(state)
			s.Plan.Status.Epoch = 3
			if intent := s.Plan.Status.Steps[0].Intent; intent != nil {
				intent.Artifacts = v1alpha1.StepArtifacts{Before: "sha256:0"}
			}
			target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
			s.Facts.Steps = map[int32]StepFacts{0: {
				Authorized: Yes, Claimed: Yes, Place: &Place{Granted: Yes}, Target: &target, Revision: Yes,
				Tried: &Write{Result: Stored, Hash: desiredHash, Artifacts: want},
			}}
			if diff := cmp.Diff(want, stored(t, Next(s)).Intent.Artifacts); diff != "" {
				t.Errorf("artifacts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWaitForADryRunSaysWhyThereIsNoAnswer(t *testing.T) {
	for _, state := range []v1alpha1.StepState{v1alpha1.StepReserved, v1alpha1.StepIntent} {
		t.Run(string(state), func(t *testing.T) {
			s := running(state)
			s.Plan.Status.Epoch = 3
			target := Target{Read: Yes, UID: "uid-0", ResourceVersion: "10", Generation: 1, Hash: driftedHash}
			s.Facts.Steps = map[int32]StepFacts{0: {
				Authorized: Yes, Claimed: Yes, Place: &Place{Granted: Yes}, Target: &target, Revision: Yes,
				Tried: &Write{Result: Lost, Message: "evidence cannot be written: Full"},
			}}
			w, ok := Next(s).(Wait)
			if want := "the dry run has no answer: evidence cannot be written: Full"; !ok || w.Why != want {
				t.Errorf("next is %+v, want a wait: %s", Next(s), want)
			}
		})
	}
}
