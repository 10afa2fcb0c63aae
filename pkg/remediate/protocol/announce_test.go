// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestAnEndIsAnnouncedUntilThePlanSaysSo(t *testing.T) {
	tests := map[string]struct {
		condition metav1.ConditionStatus
		holder    string
		announced bool
		want      string
	}{
		"an end that is not announced is":            {metav1.ConditionFalse, "a", false, "protocol.Announce {}"},
		"also by the executor that comes after":      {metav1.ConditionFalse, "b", false, "protocol.Announce {}"},
		"then the plan says so":                      {metav1.ConditionFalse, "a", true, "store Succeeded Announced=True, epoch 3 of a"},
		"in the name of the executor that announced": {metav1.ConditionFalse, "b", true, "store Succeeded Announced=True, epoch 4 of a"},
		"what is announced is done":                  {metav1.ConditionTrue, "b", false, "protocol.Done {}"},
		"and so is what a release before this ended": {"", "b", false, "protocol.Done {}"},
		"what is not known for certain is announced": {metav1.ConditionUnknown, "b", false, "protocol.Announce {}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &State{Plan: &v1alpha1.RemediationPlan{}, Holder: "a", Now: epoch, Facts: Facts{Announced: test.announced}}
			status := &s.Plan.Status
			status.Phase, status.Epoch, status.Holder = v1alpha1.PlanSucceeded, 3, test.holder
			if test.condition != "" {
				status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAnnounced, Status: test.condition}}
			}
			if diff := cmp.Diff(test.want, shownEnd(Next(s))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// shownEnd tells of an effect on a plan that has ended.
func shownEnd(e Effect) string {
	x, ok := e.(WriteStatus)
	if !ok {
		return fmt.Sprintf("%T %v", e, e)
	}
	c := x.Status.Conditions[0]
	return fmt.Sprintf("store %s %s=%s, epoch %d of %s", x.Status.Phase, c.Type, c.Status, x.Status.Epoch, x.Status.Holder)
}

// Each way in which a plan ends says in the same status that people are not told yet.
func TestTheStatusThatEndsAPlanSaysThatTheEndIsNotAnnounced(t *testing.T) {
	over := func(phase, endingAs v1alpha1.PlanPhase) *State {
		s := running(v1alpha1.StepVerified)
		s.Plan.Status.Phase, s.Plan.Status.EndingAs = phase, endingAs
		step := &s.Plan.Status.Steps[0]
		step.Settled, step.Evidence = v1alpha1.Enabled, &v1alpha1.StepEvidence{Sequence: 1}
		s.Facts.Steps = map[int32]StepFacts{0: {Let: Yes}}
		return s
	}
	malformed := two()
	malformed.Plan.Status, malformed.Plan.Spec.Plan.Batches = v1alpha1.RemediationPlanStatus{}, nil
	tests := map[string]struct {
		state *State
		want  string
	}{
		"all steps have ended":     {over(v1alpha1.PlanRunning, ""), "store Succeeded Announced=False, epoch 1 of a"},
		"a person ended it":        {over(v1alpha1.PlanSealing, v1alpha1.PlanCanceled), "store Canceled Announced=False, epoch 1 of a"},
		"it cannot be carried out": {malformed, "store Failed Announced=False, epoch 1 of a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, shownEnd(Next(test.state))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
