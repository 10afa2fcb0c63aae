// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// explained is a release in stage 1 of 2 at 25 %, of which everything is well, five minutes after its
// clock began.
func explained(change func(*v1alpha1.ABRelease)) progress.Explanation {
	now := time.Date(2026, 3, 2, 12, 5, 0, 0, time.UTC)
	began := metav1.NewTime(now.Add(-5 * time.Minute))
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1alpha1.ABReleaseSpec{
		Stable: "blue", Variations: []v1alpha1.Variation{{Name: "blue"}, {Name: "green"}}, Rollout: &v1alpha1.Rollout{},
	}}
	r.Status = v1alpha1.ABReleaseStatus{
		Effective: &v1alpha1.EffectiveSplit{Sequence: 9}, Acknowledged: &v1alpha1.SplitAcknowledgment{Proxies: 3, AcknowledgedProxies: 3},
		Observed: []v1alpha1.ObservedVariation{{Variation: "green", ReadyEndpoints: 2, Targets: 2}},
		Rollout: &v1alpha1.RolloutStatus{
			Stage: 1, Analysis: &v1alpha1.RolloutAnalysis{Run: 1, Stage: 1, Verdict: "Pass", Message: "0.3% errors"},
			Run: &v1alpha1.RolloutRun{
				Number: 1, State: "Running", From: v1alpha1.VariationRevision{Variation: "blue", Image: "shop:1"}, To: v1alpha1.VariationRevision{Variation: "green", Image: "shop:2"},
				Stages: []v1alpha1.RolloutStageStatus{
					{Number: 1, State: "Running", TrafficPercentage: new(v1alpha1.Percent(25)), DurationSeconds: new(int64(300)), StartTime: &began},
					{Number: 2, State: "Pending", TrafficPercentage: new(v1alpha1.Percent(100)), DurationSeconds: new(int64(0))},
				},
			},
		},
	}
	change(r)
	return progress.Explain(r, now)
}

func wait(reason string) *v1alpha1.RolloutWait {
	return &v1alpha1.RolloutWait{Reason: reason, Message: "as it is"}
}

func TestEachConditionOfARunIsExplained(t *testing.T) {
	cases := map[string]struct {
		change func(*v1alpha1.ABRelease)
		// want are the conditions that have not passed, by name.
		want map[string]progress.CheckState
	}{
		"nothing holds it": {func(*v1alpha1.ABRelease) {}, nil},
		"an invalid spec": {func(r *v1alpha1.ABRelease) {
			r.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: "True", Reason: "Invalid"}}
		}, map[string]progress.CheckState{"spec": progress.CheckFailed}},
		"a strategy that is gone":           {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("InvalidSpec") }, map[string]progress.CheckState{"spec": progress.CheckHolding}},
		"pods that are missing":             {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("Capacity") }, map[string]progress.CheckState{"pods": progress.CheckHolding}},
		"pods that are not counted":         {func(r *v1alpha1.ABRelease) { r.Status.Observed = nil }, map[string]progress.CheckState{"pods": progress.CheckUnknown}},
		"a proxy that has not acknowledged": {func(r *v1alpha1.ABRelease) { r.Status.Acknowledged.AcknowledgedProxies = 2 }, map[string]progress.CheckState{"proxies": progress.CheckHolding}},
		"proxies of which nothing is known": {func(r *v1alpha1.ABRelease) { r.Status.Acknowledged = nil }, map[string]progress.CheckState{"proxies": progress.CheckUnknown}},
		"a contradiction":                   {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("Contradicted") }, map[string]progress.CheckState{"traffic": progress.CheckHolding}},
		"proxies that are silent":           {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("ProxiesSilent") }, map[string]progress.CheckState{"counts": progress.CheckHolding}},
		"the duration":                      {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Stages[0].DurationSeconds = new(int64(600)) }, map[string]progress.CheckState{"time": progress.CheckHolding}},
		"a verdict that is undecided":       {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Analysis.Verdict = "Undecided" }, map[string]progress.CheckState{"judge": progress.CheckHolding}},
		"a verdict of failure that is held": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Analysis.Verdict, r.Status.Rollout.Waiting = "Fail", wait("StageFailed")
		}, map[string]progress.CheckState{"judge": progress.CheckFailed}},
		"no verdict":            {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Analysis = nil }, map[string]progress.CheckState{"judge": progress.CheckUnknown}},
		"a verdict of tomorrow": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Analysis.Verdict = "Maybe" }, map[string]progress.CheckState{"judge": progress.CheckUnknown}},
		"a gate that waits": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Gates = []v1alpha1.RolloutGateStatus{{Name: "slo", Result: "Wait"}}
		}, map[string]progress.CheckState{"gate slo": progress.CheckHolding}},
		"a gate that fails": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Gates = []v1alpha1.RolloutGateStatus{{Name: "slo", Result: "Fail"}}
		}, map[string]progress.CheckState{"gate slo": progress.CheckFailed}},
		"a gate that was not asked":          {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("Gate") }, map[string]progress.CheckState{"gates": progress.CheckHolding}},
		"an approval":                        {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("Approval") }, map[string]progress.CheckState{"person": progress.CheckHolding}},
		"an approval that will be asked for": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Stages[0].RequireApproval = v1alpha1.Enabled }, map[string]progress.CheckState{"person": progress.CheckHolding}},
		"a pause":                            {func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Pause = v1alpha1.Enabled }, map[string]progress.CheckState{"pause": progress.CheckHolding}},
		"a wait of tomorrow":                 {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = wait("Moonrise") }, map[string]progress.CheckState{"Moonrise": progress.CheckHolding}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got map[string]progress.CheckState
			for _, c := range explained(tc.change).Checks {
				if c.State != progress.CheckPassed {
					if got == nil {
						got = map[string]progress.CheckState{}
					}
					got[c.Name] = c.State
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndOfARunIsExplained(t *testing.T) {
	got := explained(func(r *v1alpha1.ABRelease) {
		r.Status.Rollout.Stage, r.Status.Rollout.Run.State, r.Status.Rollout.Run.Message = 0, "RolledBack", "stage 1 failed: 5% errors"
		r.Status.Rollout.Rejected = []v1alpha1.RejectedRevision{{Run: 1}}
	})
	want := progress.Explanation{Headline: "shop/web: run 1 is RolledBack", Because: "stage 1 failed: 5% errors", Next: "another revision begins the next run", Rejected: "shop:2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for change, want := range map[string]string{"no rollout": "shop/web has no rollout: the percentages of the spec are what proxies are told", "no run": "shop/web has no run yet"} {
		got := explained(func(r *v1alpha1.ABRelease) {
			if change == "no rollout" {
				r.Spec.Rollout = nil
			}
			r.Status.Rollout.Run = nil
		})
		if got.Headline != want || len(got.Checks) > 0 {
			t.Errorf("%s: %+v", change, got)
		}
	}
}
