// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestTheConditionDegradedTellsOfAQuarantine(t *testing.T) {
	quarantine := &v1alpha1.Quarantine{StartTime: metav1.NewTime(epoch), By: "RemediationPlan/p", Token: "plan-0"}
	for name, tc := range map[string]struct {
		status  v1alpha1.BaselineStatus
		reason  string
		message string
	}{
		"without one":        {v1alpha1.BaselineStatus{}, "NotDegraded", "no two writers"},
		"in force":           {v1alpha1.BaselineStatus{Quarantine: quarantine}, v1alpha1.ReasonQuarantined, "by RemediationPlan/p; kubectl plumbline lift ends that"},
		"and beside a fight": {v1alpha1.BaselineStatus{Quarantine: quarantine, Contention: &v1alpha1.Contention{}}, v1alpha1.ReasonContended, "Quarantined: proxies send"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.status.State = v1alpha1.StateDrifted
			s := checkedSubject(time.Hour)
			s.rules = guardedRules(t)
			s.baseline = &v1alpha1.Baseline{Status: tc.status}
			if untold := s.quarantineUntold(); untold != (tc.status.Quarantine != nil) {
				t.Errorf("before, it is untold: %t", untold)
			}
			(&Reconciler{}).writeConditions(s, &decision{}, s.baseline)
			c := meta.FindStatusCondition(s.baseline.Status.Conditions, v1alpha1.ConditionDegraded)
			if c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) || s.quarantineUntold() {
				t.Errorf("Degraded is %+v, untold is %t", c, s.quarantineUntold())
			}
			s.baseline.Status.Quarantine = nil
			if untold := s.quarantineUntold(); untold != (tc.reason == v1alpha1.ReasonQuarantined) {
				t.Errorf("after its end, it is untold: %t", untold)
			}
		})
	}
}

func TestTheOldestQuarantineIsAFigure(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, clocktesting.NewFakePassiveClock(epoch))
	if err != nil {
		t.Fatal(err)
	}
	since := func(age time.Duration) *v1alpha1.Baseline {
		return &v1alpha1.Baseline{Status: v1alpha1.BaselineStatus{Quarantine: &v1alpha1.Quarantine{StartTime: metav1.NewTime(epoch.Add(-age))}}}
	}
	api := webKey
	api.Name = "api"
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "0"},
		{func() { m.noteQuarantine(webKey, since(time.Minute)) }, "60"},
		{func() { m.noteQuarantine(api, since(time.Hour)) }, "3600"},
		{func() { m.noteQuarantine(api, &v1alpha1.Baseline{}) }, "60"},
		{func() { m.noteQuarantine(webKey, nil) }, "0"},
	} {
		step.do()
		want := "# HELP plumbline_quarantine_oldest_seconds Age of the oldest quarantine; 0 while no object is in quarantine.\n" +
			"# TYPE plumbline_quarantine_oldest_seconds gauge\nplumbline_quarantine_oldest_seconds " + step.want + "\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "plumbline_quarantine_oldest_seconds"); err != nil {
			t.Error(err)
		}
	}
}
