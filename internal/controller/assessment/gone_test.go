// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ownedWorld is a world whose assessment the opener has created, for a plan that is stored.
func ownedWorld(t *testing.T) (*world, *v1alpha1.RemediationPlan) {
	t.Helper()
	plan := planEnded(v1alpha1.StepVerified)
	plan.Status.Steps[0].Result = &v1alpha1.StepResult{Hash: hashOf(deployment("shop:1")), UID: "web", Generation: 7, RecordTime: *at(0)}
	w := newWorld(t, written(), append(twoPods(true, true), plan)...)
	if err := w.client.Delete(t.Context(), w.stored()); err != nil {
		t.Fatal(err)
	}
	w.open()
	return w, plan
}

// open has the opener look at the plan.
func (w *world) open() {
	w.t.Helper()
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "nightly-1"}}
	if _, err := (&Opener{Client: w.client}).Reconcile(w.t.Context(), request); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) assessments() []v1alpha1.EffectivenessAssessment {
	w.t.Helper()
	var all v1alpha1.EffectivenessAssessmentList
	if err := w.client.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	return all.Items
}

// collectGarbage deletes each assessment whose plan is gone, as Kubernetes does.
func (w *world) collectGarbage() {
	w.t.Helper()
	all := w.assessments()
	for i := range all {
		owner, plan := metav1.GetControllerOf(&all[i]), &v1alpha1.RemediationPlan{}
		if owner == nil {
			w.t.Fatalf("no plan owns %s", all[i].Name)
		}
		err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "shop", Name: owner.Name}, plan)
		if err == nil && plan.UID == owner.UID {
			continue
		}
		if client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		if err := w.client.Delete(w.t.Context(), &all[i]); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A plan can be deleted in each phase of its assessments, which go with it. Until then the assessor goes on.
func TestAPlanThatIsDeletedTakesItsAssessments(t *testing.T) {
	tests := map[string]func(*world){
		"before the first look": func(*world) {},
		"while the workload stabilizes": func(w *world) {
			w.until(v1alpha1.AssessmentStabilizing)
		},
		"while an answer is missing": func(w *world) {
			w.until(v1alpha1.AssessmentStabilizing)
			w.readFails = errLost
			w.until(v1alpha1.AssessmentAssessing)
		},
		"after the end": func(w *world) { w.run() },
	}
	for name, reach := range tests {
		t.Run(name, func(t *testing.T) {
			w, plan := ownedWorld(t)
			reach(w)
			w.collectGarbage()
			if n := len(w.assessments()); n != 1 {
				t.Fatalf("there are %d assessments of a plan that is there", n)
			}
			if err := w.client.Delete(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			if _, err := w.look(); err != nil {
				t.Errorf("before the garbage collection: %v", err)
			}
			w.collectGarbage()
			writes := w.writes
			w.clock.SetTime(noon.Add(time.Hour))
			if result, err := w.look(); err != nil || result != (reconcile.Result{}) {
				t.Errorf("after the garbage collection: %+v, %v", result, err)
			}
			w.open()
			if left := w.assessments(); len(left) > 0 || w.writes != writes || w.r.Metrics.count() != 0 {
				t.Errorf("%d assessments, %d writes, %v in flight are left", len(left), w.writes-writes, w.r.Metrics.count())
			}
		})
	}
}
