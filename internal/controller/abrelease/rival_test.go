// SPDX-License-Identifier: Apache-2.0

// One goroutine: the race detector has nothing to say, and takes six times as long.
//go:build !race

package abrelease

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// elder is a release of another Service, which was made before the release web and rolls out to the same canary.
func (w *world) elder(changes ...func(*v1alpha1.ABRelease)) *v1alpha1.ABRelease {
	w.Helper()
	var r v1alpha1.ABRelease
	if err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, &r); err != nil {
		w.Fatal(err)
	}
	e := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "admin", UID: "u0", Generation: 1}, Spec: *r.Spec.DeepCopy()}
	e.Spec.ServiceName = "admin"
	for _, change := range changes {
		change(e)
	}
	w.create(e)
	return e
}

func TestTwoReleasesDoNotRollOutToOneCanary(t *testing.T) {
	canary := func(change func(*v1alpha1.Variation)) func(*v1alpha1.ABRelease) {
		return func(r *v1alpha1.ABRelease) { change(&r.Spec.Variations[1]) }
	}
	for name, tc := range map[string]struct {
		elder func(*v1alpha1.ABRelease)
		named string
	}{
		"the same Deployment":                    {func(*v1alpha1.ABRelease) {}, "Deployment canary"},
		"a group of workers that answers here":   {canary(func(v *v1alpha1.Variation) { v.Workload, v.Group = nil, &v1alpha1.VariationGroup{Name: "canary"} }), "Deployment canary"},
		"another Deployment":                     {canary(func(v *v1alpha1.Variation) { v.Workload.Name = "canary-2" }), ""},
		"a StatefulSet of the name":              {canary(func(v *v1alpha1.Variation) { v.Workload.Kind = "StatefulSet" }), ""},
		"a clone with a name of its own":         {canary(func(v *v1alpha1.Variation) { v.Workload, v.Clone = nil, &v1alpha1.VariationClone{Image: "shop:2"} }), ""},
		"pods by a selector":                     {canary(func(v *v1alpha1.Variation) { v.Workload, v.Selector = nil, &v1alpha1.PodSelector{} }), ""},
		"percentages that a person writes":       {func(r *v1alpha1.ABRelease) { r.Spec.Rollout = nil }, ""},
		"the Deployment is the stable one there": {func(r *v1alpha1.ABRelease) { r.Spec.Stable = "canary" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := rolling(t)
			w.elder(tc.elder)
			r := w.looks()
			stalled := conditionOf(r, v1alpha1.ConditionStalled)
			if tc.named == "" {
				if stalled.Reason != "" || r.Status.Rollout.Run == nil {
					t.Errorf("the run is %+v: %+v", r.Status.Rollout, stalled)
				}
				return
			}
			if stalled.Reason != "CanaryShared" || !strings.Contains(stalled.Message, "ABRelease admin rolls out to "+tc.named+" already") {
				t.Errorf("Stalled is %+v", stalled)
			}
			if r.Status.Rollout.Run != nil || r.Status.Split != "stable 100 / canary 0" {
				t.Errorf("in force is %q, and the run is %+v", r.Status.Split, r.Status.Rollout.Run)
			}
			if progressing := conditionOf(r, v1alpha1.ConditionProgressing); !strings.Contains(progressing.Message, "ABRelease admin") {
				t.Errorf("Progressing is %+v", progressing)
			}
		})
	}
}

func TestTheReleaseThatWasMadeFirstRollsOut(t *testing.T) {
	w, _ := rolling(t)
	e := w.elder(func(r *v1alpha1.ABRelease) { r.Name = "zzz" })
	if r := w.looks(); r.Status.Rollout.Run == nil {
		t.Fatalf("the first one has no run: %+v", r.Status.Conditions)
	}
	if err := w.Client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	e = w.elder()
	if r := w.looks(); r.Status.Rollout.Run == nil || r.Status.Rollout.Run.State != "Running" || conditionOf(r, v1alpha1.ConditionStalled).Reason != "CanaryShared" {
		t.Errorf("a run that is under way is %+v: %+v", r.Status.Rollout, r.Status.Conditions)
	}
	if err := w.Client.Delete(t.Context(), e); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if r := w.looks(); conditionOf(r, v1alpha1.ConditionStalled).Reason != "" {
		t.Errorf("with one release left the conditions are %+v", r.Status.Conditions)
	}
}
