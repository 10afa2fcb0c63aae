// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// ended are works of a release that succeeded, with the numbers of so many in runs of four.
func ended(n int64) (release *v1alpha1.ABRelease, works []v1alpha1.ReleaseWork) {
	release = &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "r"}, Status: v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{}}}
	for i := range n {
		works = append(works, v1alpha1.ReleaseWork{
			Spec:   v1alpha1.ReleaseWorkSpec{ReleaseUID: "r", Run: 1 + i/4, Number: 1 + i%4, Verb: v1alpha1.WorkScale, Replicas: new(int32(1))},
			Status: v1alpha1.ReleaseWorkStatus{Phase: v1alpha1.WorkSucceeded},
		})
	}
	return release, works
}

func TestRemovable(t *testing.T) {
	for name, tc := range map[string]struct {
		works  int64
		change func(*v1alpha1.ABRelease, []v1alpha1.ReleaseWork)
		want   []int64 // of 4 * (run - 1) + number
	}{
		"few works":                  {24, nil, nil},
		"many works":                 {27, nil, []int64{1, 2, 3}},
		"a work that is under way":   {27, func(_ *v1alpha1.ABRelease, w []v1alpha1.ReleaseWork) { w[1].Status.Phase = v1alpha1.WorkRunning }, []int64{1, 3}},
		"a work that was not seen":   {27, func(_ *v1alpha1.ABRelease, w []v1alpha1.ReleaseWork) { w[1].Status.Phase = "" }, []int64{1, 3}},
		"a phase of a later version": {27, func(_ *v1alpha1.ABRelease, w []v1alpha1.ReleaseWork) { w[1].Status.Phase = "Later" }, []int64{1, 3}},
		"a work of another release":  {27, func(_ *v1alpha1.ABRelease, w []v1alpha1.ReleaseWork) { w[1].Spec.ReleaseUID = "other" }, []int64{1, 3}},
		"a work that the status names": {27, func(r *v1alpha1.ABRelease, _ []v1alpha1.ReleaseWork) {
			r.Status.Rollout.Works = []v1alpha1.RolloutWork{{Run: 1, Number: 3, Phase: v1alpha1.WorkPending}}
		}, []int64{1, 2}},
		"a work that holds a minimum": {27, func(_ *v1alpha1.ABRelease, w []v1alpha1.ReleaseWork) { w[0].Spec.Verb = v1alpha1.WorkHoldMinReplicas }, []int64{2, 3}},
		"a release without a rollout": {27, func(r *v1alpha1.ABRelease, _ []v1alpha1.ReleaseWork) { r.Status.Rollout = nil }, []int64{1, 2, 3}},
		"a minimum that another work holds": {27, func(_ *v1alpha1.ABRelease, w []v1alpha1.ReleaseWork) {
			w[0].Spec.Verb, w[2].Spec.Verb = v1alpha1.WorkHoldMinReplicas, v1alpha1.WorkHoldMinReplicas
		}, []int64{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			release, works := ended(tc.works)
			if tc.change != nil {
				tc.change(release, works)
			}
			slices.Reverse(works) // in no order
			var got []int64
			for _, w := range work.Removable(release, works) {
				got = append(got, 4*(w.Spec.Run-1)+w.Spec.Number)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever is removed, the held minimum is known as before, and a bounded number of ended works is left.
func TestRemovable_LosesNoMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		release, works := ended(int64(rapid.IntRange(0, 60).Draw(t, "works")))
		for i := range works {
			w := &works[i]
			w.Spec.Verb = rapid.SampledFrom([]v1alpha1.ReleaseWorkVerb{v1alpha1.WorkScale, v1alpha1.WorkScale, v1alpha1.WorkHoldMinReplicas}).Draw(t, "verb")
			*w.Spec.Replicas = rapid.Int32Range(0, 3).Draw(t, "replicas")
			w.Status.Phase = rapid.SampledFrom([]v1alpha1.ReleaseWorkPhase{v1alpha1.WorkSucceeded, v1alpha1.WorkSucceeded, v1alpha1.WorkRefused, v1alpha1.WorkFailed, v1alpha1.WorkRunning}).Draw(t, "phase")
			w.Status.Held = holding(1, int32(i)) //nolint:gosec // few
		}
		next := &v1alpha1.ReleaseWork{Spec: v1alpha1.ReleaseWorkSpec{ReleaseUID: "r", Run: 100, Number: 1}}
		before := work.HoldingOf(next, works)
		removed := work.Removable(release, works)
		left := slices.DeleteFunc(slices.Clone(works), func(w v1alpha1.ReleaseWork) bool {
			return slices.ContainsFunc(removed, func(r *v1alpha1.ReleaseWork) bool { return r.Spec == w.Spec })
		})
		if diff := cmp.Diff(before, work.HoldingOf(next, left)); diff != "" {
			t.Errorf("what is held (-before +after):\n%s", diff)
		}
		ended := 0
		for i := range left {
			if work.Final(left[i].Status.Phase) {
				ended++
			}
		}
		if ended > work.MaxKept+1 {
			t.Errorf("%d works that have ended are left", ended)
		}
	})
}
