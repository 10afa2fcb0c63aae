// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAPlanPutsItsTargetBack(t *testing.T) {
	w := newWorld(t)
	if out := w.finish(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	plan := w.now()
	if step := plan.Status.Steps[0]; plan.Status.Phase != v1alpha1.PlanSucceeded || step.State != v1alpha1.StepVerified {
		t.Errorf("plan %s, step %s %s: %q", plan.Status.Phase, step.State, step.Reason, step.Logs)
	}
	if diff := cmp.Diff([]string{"put web"}, w.targets.stored); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got, want := w.guards.hash(t, w.targets.body("web")), plan.Spec.Plan.Targets[0].DesiredHash; got != want {
		t.Errorf("the target has hash %s, want %s", got, want)
	}
}
