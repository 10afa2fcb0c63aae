// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// losing loses the answer to each status that the API server stores and that lost names.
type losing struct {
	client.Client
	lost func(*v1alpha1.RemediationPlan) bool
}

func (l losing) Status() client.SubResourceWriter { return losingStatus{l.Client.Status(), l.lost} }

type losingStatus struct {
	client.SubResourceWriter
	lost func(*v1alpha1.RemediationPlan) bool
}

func (l losingStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	err := l.SubResourceWriter.Update(ctx, o, opts...)
	if plan, ok := o.(*v1alpha1.RemediationPlan); ok && err == nil && l.lost(plan) {
		return errNetwork
	}
	return err
}

// carryOver carries the plan on, whatever fails, until nothing is left to do for it.
func (w *world) carryOver() {
	w.Helper()
	for range 100 {
		if out, err := w.Carry(w.Context(), w.key()); err == nil && out.Done {
			return
		}
	}
	w.Fatalf("the plan never ends: %+v", w.now().Status)
}

// D15 of the review of remediation: the API server stored the end of a plan, the answer
// was lost, and the process told neither the log nor any person of that end.
func TestAnEndWhoseAnswerWasLostIsTold(t *testing.T) {
	ended := func(announced bool) func(*v1alpha1.RemediationPlan) bool {
		return func(p *v1alpha1.RemediationPlan) bool {
			return p.Status.Phase == v1alpha1.PlanSucceeded && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionAnnounced) == announced
		}
	}
	tests := map[string]func(*v1alpha1.RemediationPlan) bool{
		"every answer arrives":                       func(*v1alpha1.RemediationPlan) bool { return false },
		"the answer to the end is lost":              ended(false),
		"the answer to the announcement is lost too": ended(true),
	}
	for name, lost := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Client = losing{w.Client, lost}
			w.carryOver()
			if diff := cmp.Diff([]string{"Succeeded"}, w.ends); diff != "" || !ended(true)(w.now()) {
				t.Errorf("ends that were told (-want +got):\n%s\nthe conditions are %+v", diff, w.now().Status.Conditions)
			}
		})
	}
}

// An executor stores the end and dies; the next one tells it, once for all.
func TestTheNextExecutorTellsTheEndThatTheOneBeforeItDidNot(t *testing.T) {
	w := newWorld(t)
	w.fails = func(call, _ string) error {
		if call == "update RemediationPlan" && w.now().Status.Phase == v1alpha1.PlanSucceeded {
			return errNetwork
		}
		return nil
	}
	for range 20 { // its announcements are never stored
		if out, err := w.Carry(t.Context(), w.key()); out.Done && err == nil {
			t.Fatal("the plan is done, and does not say that people were told")
		}
	}
	w.fails, w.ends, w.Holder = nil, nil, "executor-2"
	for range 2 {
		w.carryOver()
	}
	plan := w.now()
	if diff := cmp.Diff([]string{"Succeeded"}, w.ends); diff != "" || plan.Status.Holder != "executor-2" || plan.Status.Epoch != 2 {
		t.Errorf("ends that were told (-want +got):\n%s\nthe plan is that of %s, epoch %d", diff, plan.Status.Holder, plan.Status.Epoch)
	}
}

func TestAnEndOfAnEarlierReleaseIsNotToldAgain(t *testing.T) {
	w := newWorld(t)
	w.plan = w.now()
	w.plan.Status = v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanFailed, Epoch: 1, Holder: "executor-0", CompletionTime: &metav1.Time{Time: epoch}}
	if err := w.Client.Status().Update(t.Context(), w.plan); err != nil {
		t.Fatal(err)
	}
	w.calls = nil
	w.carryOver()
	if len(w.ends) > 0 || len(w.calls) > 0 {
		t.Errorf("told are %v, and written %v", w.ends, w.calls)
	}
}
