// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// deliveryObjects are a release whose run asks queries, one that is held without a rollout, and strategies of
// a person and of the chart.
func deliveryObjects() []client.Object {
	rolling := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rolling"}}
	rolling.Spec.Rollout = &v1alpha1.Rollout{StrategyName: "own"}
	gate := func(kind v1alpha1.GateKind, name string, result v1alpha1.GateResult, message string) v1alpha1.RolloutGateStatus {
		return v1alpha1.RolloutGateStatus{Kind: kind, Name: name, Result: result, Message: message, AnswerTime: metav1.NewTime(testNow)}
	}
	rolling.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 1, State: "Running"}, Gates: []v1alpha1.RolloutGateStatus{
		gate("Query", "silent", "NoData", "no answer of Prometheus"), gate("Query", "empty", "NoData", "the result is empty"),
		gate("Query", "fine", "Pass", "is at most 1"), gate("Webhook", "hook", "Wait", "no answer of Prometheus"),
	}}
	ended := rolling.DeepCopy()
	ended.Name, ended.Status.Rollout.Run.State = "ended", "RolledBack"
	held := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held", Finalizers: []string{v1alpha1.FinalizerReturnRequests}}}
	own := &v1alpha1.RolloutStrategy{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	shipped := &v1alpha1.RolloutStrategy{ObjectMeta: metav1.ObjectMeta{Name: "shipped", Labels: map[string]string{labelName: plumbline, labelComponent: "delivery"}}}
	return []client.Object{rolling, ended, held, own, shipped}
}

func TestDelivery_IsReadWhereItMatters(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	held := doctor.Got([]doctor.Held{{Namespace: "shop", Name: "held"}})
	for name, tc := range map[string]struct {
		workloads doctor.Read[[]doctor.Workload]
		want      doctor.Delivery
	}{
		"with a discovery server": {doctor.Got([]doctor.Workload{{Name: doctor.DiscoveryName}}), doctor.Delivery{
			Releases: doctor.Got([]doctor.Release{{Namespace: "shop", Name: "ended", Strategy: "own"}, {Namespace: "shop", Name: "rolling", Strategy: "own"}}),
			Held:     held, Silences: doctor.Got([]doctor.Silence{{Namespace: "shop", Release: "rolling", Query: "silent", Time: testNow}}),
			Strategies: doctor.Got([]string{"own", "shipped"}), Shipped: []string{"shipped"},
		}},
		"without a discovery server":        {doctor.Got([]doctor.Workload{}), doctor.Delivery{Held: held}},
		"where the workloads are not known": {doctor.Read[[]doctor.Workload]{}, doctor.Delivery{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reader{
				client:   fakeclient.NewBuilder(scheme).WithObjects(deliveryObjects()...).Build(),
				snapshot: &doctor.Snapshot{Namespace: "plumbline-system", Workloads: tc.workloads},
			}
			r.delivery(t.Context())
			if diff := cmp.Diff(tc.want, r.snapshot.Delivery); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

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
