// SPDX-License-Identifier: Apache-2.0

package standby_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
	"github.com/plumbline-dev/plumbline/pkg/traffic/standby"
)

// decide has package release decide about an ABRelease, as the discovery server does.
func decide(t *testing.T, r *v1alpha1.ABRelease, standbyPods int) {
	t.Helper()
	terms, err := release.TermsOf(r)
	if err != nil {
		t.Fatal(err)
	}
	ready := map[string]int{string(v1alpha1.VariationTarget): 3, string(v1alpha1.VariationStandby): standbyPods}
	d := release.Decide(release.Facts{Terms: &terms, Before: release.StateOf(r), Ready: ready, Now: time.Unix(1772366400, 0)})
	d.After.Write(&r.Status)
}

func acknowledge(r *v1alpha1.ABRelease, knowledge v1alpha1.AcknowledgmentState) {
	r.Status.Acknowledged = &v1alpha1.SplitAcknowledgment{Count: "1/2", Sequence: r.Status.Effective.Sequence, Knowledge: knowledge}
}

// move has the spec give all requests to a variation, as a write does.
func move(r *v1alpha1.ABRelease, to v1alpha1.VariationName) {
	standby.GiveAll(r, to)
	r.Generation++
}

func TestStandingOf(t *testing.T) {
	for name, tc := range map[string]struct {
		happens   func(*testing.T, *v1alpha1.ABRelease)
		toStandby bool
		inForce   bool
		noProxies bool
		why       string
	}{
		"nothing is decided": {func(*testing.T, *v1alpha1.ABRelease) {}, false, false, false, "the discovery server has not decided yet"},
		"it is decided, and no proxy has told": {func(t *testing.T, r *v1alpha1.ABRelease) {
			decide(t, r, 0)
		}, false, false, false, "the discovery server has not told yet"},
		"all proxies send the requests to the target": {func(t *testing.T, r *v1alpha1.ABRelease) {
			decide(t, r, 0)
			acknowledge(r, v1alpha1.AcknowledgedProven)
		}, false, true, false, ""},
		"no proxy is there": {func(t *testing.T, r *v1alpha1.ABRelease) {
			decide(t, r, 0)
			acknowledge(r, v1alpha1.AcknowledgedByNoProxy)
		}, false, false, true, "1/2 proxies have acknowledged it"},
		"the switch is not decided": {func(t *testing.T, r *v1alpha1.ABRelease) {
			decide(t, r, 3)
			acknowledge(r, v1alpha1.AcknowledgedProven)
			move(r, v1alpha1.VariationStandby)
		}, true, false, false, "the discovery server has not decided yet"},
		"a proxy has not acknowledged the switch": {func(t *testing.T, r *v1alpha1.ABRelease) {
			decide(t, r, 3)
			acknowledge(r, v1alpha1.AcknowledgedProven)
			move(r, v1alpha1.VariationStandby)
			decide(t, r, 3)
		}, true, false, false, "1/2 proxies have acknowledged it"},
		"all proxies send the requests to the standby": {func(t *testing.T, r *v1alpha1.ABRelease) {
			move(r, v1alpha1.VariationStandby)
			decide(t, r, 3)
			acknowledge(r, v1alpha1.AcknowledgedAccepted)
		}, true, true, false, ""},
		"the standby has no ready pods, so its share goes to the target": {func(t *testing.T, r *v1alpha1.ABRelease) {
			move(r, v1alpha1.VariationStandby)
			decide(t, r, 0)
			acknowledge(r, v1alpha1.AcknowledgedProven)
		}, true, false, false, "the discovery server holds it back"},
		"a person gives half of the requests to the standby": {func(t *testing.T, r *v1alpha1.ABRelease) {
			r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"target": v1alpha1.Percent(50), "standby": v1alpha1.Percent(50)}
			decide(t, r, 3)
			acknowledge(r, v1alpha1.AcknowledgedProven)
		}, true, false, false, "the discovery server holds it back"},
	} {
		t.Run(name, func(t *testing.T) {
			of := &v1alpha1.StepStandby{Name: "standby-1", ServiceName: "front"}
			r := standby.Release("shop", "web", of, "plan.0.1", metav1.OwnerReference{Kind: "RemediationPlan", Name: "p", UID: "plan"})
			r.Generation = 1
			tc.happens(t, r)
			got := standby.StandingOf(r)
			if got.ToStandby != tc.toStandby || got.InForce != tc.inForce || got.NoProxies != tc.noProxies || !strings.HasPrefix(got.Why, tc.why) || (tc.why == "") != (got.Why == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}
