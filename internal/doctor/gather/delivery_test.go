// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestReleaseOf_TellsOfAWait(t *testing.T) {
	for name, tc := range map[string]struct {
		status v1alpha1.ABReleaseStatus
		want   doctor.Release
	}{
		"no run was made yet": {v1alpha1.ABReleaseStatus{}, doctor.Release{}},
		"a run that waits for nothing": {
			v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{}}, doctor.Release{},
		},
		"a run that waits without a deadline": {
			v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{Waiting: &v1alpha1.RolloutWait{Reason: "Paused", Message: "m"}}},
			doctor.Release{Waiting: "Paused", Message: "m"},
		},
		"a run that waits until a deadline": {
			v1alpha1.ABReleaseStatus{Rollout: &v1alpha1.RolloutStatus{Waiting: &v1alpha1.RolloutWait{Reason: "Capacity", DeadlineTime: new(metav1.NewTime(testNow))}}},
			doctor.Release{Waiting: "Capacity", Deadline: testNow},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: tc.status}
			in.Spec.Rollout = &v1alpha1.Rollout{StrategyName: "standard"}
			tc.want.Namespace, tc.want.Name, tc.want.Strategy = "shop", "web", "standard"
			if diff := cmp.Diff(tc.want, releaseOf(in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
