// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// D19 of the review of remediation.
func TestAStepGivesTheFieldsOfItsWriteBackAndFailsForNoneOfThem(t *testing.T) {
	keeps := Target{Read: Yes, UID: "uid-0", Hash: desiredHash, KeepsFields: true, Ready: Yes}
	ill, moved, gone := keeps, keeps, Target{Read: Yes, UID: "uid-0", Hash: desiredHash, Ready: Yes}
	ill.Ready, moved.Hash = No, driftedHash
	tests := map[string]struct {
		facts   StepFacts
		want    string
		message string
	}{
		"a target that is read anew":                 {StepFacts{}, "protocol.ReadTarget {0}", ""},
		"a target that has fields of others":         {StepFacts{Target: &keeps}, "protocol.ReturnFields {0}", ""},
		"one that is not ready yet":                  {StepFacts{Target: &ill}, "protocol.ReturnFields {0}", ""},
		"one that was changed since":                 {StepFacts{Target: &moved}, "Failed TargetMoved", "a writer changed it after its remediation"},
		"what was given back":                        {StepFacts{Target: &gone, Returned: &Write{Result: Stored}}, "Verified", "as it should be, and healthy"},
		"what could not be given back fails no step": {StepFacts{Target: &keeps, Returned: &Write{Result: Forbidden, Message: "no patch"}}, "Verified", "as it should be, and healthy; its fields could not be given back to their field managers: no patch"},
		"a conflict is tried in the next run":        {StepFacts{Target: &ill, Returned: &Write{Result: Conflicted}}, "wait 1m0s: it is not ready yet", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(v1alpha1.StepApplied)
			s.Health = &Health{Timeout: time.Minute}
			s.Plan.Status.Steps[0].Result = &v1alpha1.StepResult{RecordTime: metav1.NewTime(epoch)}
			s.Facts.Steps = map[int32]StepFacts{0: test.facts}
			got := Next(s)
			if ends(got) != test.want {
				t.Errorf("got %q, want %q", ends(got), test.want)
			}
			if w, ok := got.(WriteStatus); ok && w.Status.Steps[0].Message != test.message {
				t.Errorf("it says %q, want %q", w.Status.Steps[0].Message, test.message)
			}
		})
	}
}
