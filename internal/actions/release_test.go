// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// A second retry of the same run did nothing, and the command said that it had been done.
func TestASecondRequestIsAnotherAttempt(t *testing.T) {
	handled := func(verb v1alpha1.RolloutVerb, stage, attempt int32, reason string) *v1alpha1.HandledControl {
		return &v1alpha1.HandledControl{RolloutControl: v1alpha1.RolloutControl{Verb: verb, Run: 1, Stage: stage, Attempt: attempt, RequestedBy: "ada", Reason: reason}}
	}
	for name, c := range map[string]struct {
		verb    v1alpha1.RolloutVerb
		handled *v1alpha1.HandledControl
		want    int32
	}{
		"the first request":                   {"Retry", nil, 0},
		"a request after another verb":        {"Retry", handled("Rollback", 0, 0, "again"), 0},
		"a request with another reason":       {"Retry", handled("Retry", 0, 0, "INC-9"), 0},
		"the same request":                    {"Retry", handled("Retry", 0, 0, "again"), 2},
		"the same request for the third time": {"Retry", handled("Retry", 0, 2, "again"), 3},
		"the same request by hand":            {"Retry", handled("Retry", 0, 1, "again"), 2},
		"the same approval":                   {"Approve", handled("Approve", 1, 0, "again"), 2},
		"an approval of another stage":        {"Approve", handled("Approve", 2, 0, "again"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{}
			r.Spec.Rollout = &v1alpha1.Rollout{}
			r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 1, State: "Running"}, Stage: 1, Handled: c.handled}
			control, err := PlanReleaseVerb(r, c.verb, 0, "", "ada", "again")
			if err != nil || control.Attempt != c.want {
				t.Fatalf("the attempt is %d, want %d: %v", control.Attempt, c.want, err)
			}
			if progress, _ := JudgeReleaseVerb(r, control); progress != Pending {
				t.Errorf("the request is %v before the discovery server has seen it", progress)
			}
		})
	}
}
