// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// An assessment tells by the uid and the generation whether the target was replaced, and whether a user wrote it.
func TestTheResultHasWhatTheWriteLeft(t *testing.T) {
	want := v1alpha1.StepResult{ResourceVersion: "12", Hash: desiredHash, UID: "u", Generation: 7, RecordTime: *at(0)}
	answered := want
	answered.Origin = v1alpha1.ResultResponse
	s := running(v1alpha1.StepIntent)
	s.Facts.Steps = map[int32]StepFacts{0: {Written: &Write{Result: Stored, ResourceVersion: "12", Hash: desiredHash, UID: "u", Generation: 7}}}
	if diff := cmp.Diff(&answered, stored(t, Next(s)).Result); diff != "" {
		t.Errorf("the result of an answer (-want +got):\n%s", diff)
	}
	recovered := want
	recovered.Origin = v1alpha1.ResultRecovered
	s = running(v1alpha1.StepIntent)
	recovered.UID = s.Plan.Status.Steps[0].Intent.UID
	s.Facts.Steps = map[int32]StepFacts{0: {Target: &Target{Read: Yes, UID: recovered.UID, ResourceVersion: "12", Generation: 7, Hash: desiredHash}}}
	if diff := cmp.Diff(&recovered, stored(t, Next(s)).Result); diff != "" {
		t.Errorf("the result that the target told (-want +got):\n%s", diff)
	}
}
