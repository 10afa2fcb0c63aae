// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

func TestPeopleAreToldOfAWriteThatDidNotHelp(t *testing.T) {
	tests := map[string]struct {
		effect v1alpha1.StepEffect
		event  string // beginning of it; empty for none
	}{
		"it did not help": {
			v1alpha1.StepEffect{Verdict: v1alpha1.VerdictIneffective, Score: new(int32(6_500)), AssessmentName: "nightly-0"},
			"Warning RemediationIneffective plan ",
		},
		"it was undone":                {v1alpha1.StepEffect{Verdict: v1alpha1.VerdictInvalidated, AssessmentName: "nightly-0"}, "Warning RemediationInvalidated plan "},
		"it helped":                    {v1alpha1.StepEffect{Verdict: v1alpha1.VerdictEffective, AssessmentName: "nightly-0"}, ""},
		"too little is known":          {v1alpha1.StepEffect{Verdict: v1alpha1.VerdictInconclusive, AssessmentName: "nightly-0"}, ""},
		"a verdict of a later version": {v1alpha1.StepEffect{Verdict: "Splendid", AssessmentName: "nightly-0"}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.Assessed(w.plan, 0, &tc.effect)
			w.Assessed(w.plan, 0, &tc.effect) // an executor that died tells it again
			if !strings.Contains(w.log.String(), "remediation.target.assessed") {
				t.Errorf("the log has %s", w.log.String())
			}
			events := w.noted()
			if (len(events) > 0) != (tc.event != "") || tc.event != "" && !strings.HasPrefix(events[0], tc.event) {
				t.Errorf("the events are %q", events)
			}
			if (len(w.told) > 0) != (tc.event != "") {
				t.Fatalf("people were told %+v", w.told)
			}
			if tc.event == "" {
				return
			}
			first := w.told[0]
			if first.Type != notify.PlanIneffective || len(first.Targets) != 1 || first.ID() != w.told[1].ID() {
				t.Errorf("people were told %+v, and then %+v", first, w.told[1])
			}
		})
	}
}

func TestTheEndOfAnAssessmentWakesItsPlan(t *testing.T) {
	of := func(phase v1alpha1.AssessmentPhase) *v1alpha1.EffectivenessAssessment {
		return &v1alpha1.EffectivenessAssessment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ended-0"},
			Spec:       v1alpha1.EffectivenessAssessmentSpec{Subject: v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: "ended"}}},
			Status:     v1alpha1.EffectivenessAssessmentStatus{Phase: phase},
		}
	}
	p := endedAssessments()
	got := map[string]bool{
		"one that ends":          p.Update(event.UpdateEvent{ObjectOld: of(v1alpha1.AssessmentAssessing), ObjectNew: of(v1alpha1.AssessmentCompleted)}),
		"one that goes on":       p.Update(event.UpdateEvent{ObjectOld: of(v1alpha1.AssessmentStabilizing), ObjectNew: of(v1alpha1.AssessmentAssessing)}),
		"one that has ended":     p.Update(event.UpdateEvent{ObjectOld: of(v1alpha1.AssessmentCompleted), ObjectNew: of(v1alpha1.AssessmentCompleted)}),
		"one that is met ended":  p.Create(event.CreateEvent{Object: of(v1alpha1.AssessmentFailed)}),
		"one that is made":       p.Create(event.CreateEvent{Object: of("")}),
		"one that is deleted":    p.Delete(event.DeleteEvent{Object: of(v1alpha1.AssessmentCompleted)}),
		"something else":         p.Create(event.CreateEvent{Object: &v1alpha1.RemediationPlan{}}),
		"something that happens": p.Generic(event.GenericEvent{Object: of(v1alpha1.AssessmentCompleted)}),
	}
	want := map[string]bool{
		"one that ends": true, "one that goes on": false, "one that has ended": false, "one that is met ended": true, "one that is made": false, "one that is deleted": false,
		"something else": false, "something that happens": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what wakes a plan (-want +got):\n%s", diff)
	}
	ended := func(effect *v1alpha1.StepEffect) *v1alpha1.RemediationPlan {
		return &v1alpha1.RemediationPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ended", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
			Status:     v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded, Steps: []v1alpha1.PlanStep{{Index: 0, State: v1alpha1.StepVerified, Effect: effect}}},
		}
	}
	for name, tc := range map[string]struct {
		plan  *v1alpha1.RemediationPlan
		wakes int
	}{
		"a plan without the verdict": {ended(nil), 1},
		"a plan that has it":         {ended(&v1alpha1.StepEffect{Verdict: v1alpha1.VerdictEffective}), 0},
	} {
		r := &Reconciler{Cached: readerOf(t, tc.plan)}
		if got := r.ofAssessment(t.Context(), of(v1alpha1.AssessmentCompleted)); len(got) != tc.wakes {
			t.Errorf("%s: %v", name, got)
		}
	}
}
