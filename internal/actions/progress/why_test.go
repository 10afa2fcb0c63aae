// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// underWay is a release whose run measures stage 1 of 2.
func underWay() *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{}
	r.Spec.Rollout = &v1alpha1.Rollout{StrategyName: "canary", OnUndecided: v1alpha1.UndecidedHold}
	r.Spec.Stable, r.Spec.Variations = "a", []v1alpha1.Variation{{Name: "a"}, {Name: "b"}}
	r.Status.Observed = []v1alpha1.ObservedVariation{{Variation: "b", ReadyEndpoints: 2, Targets: 2, SharePercent: new(int32(10))}, {Variation: "a"}}
	r.Status.Acknowledged = &v1alpha1.SplitAcknowledgment{Proxies: 3, AcknowledgedProxies: 3}
	r.Status.Rollout = &v1alpha1.RolloutStatus{Stage: 1, Run: &v1alpha1.RolloutRun{
		Number: 7, State: "Running", AutoAdvance: v1alpha1.Enabled, Capacity: 4,
		To: v1alpha1.VariationRevision{Variation: "b", Image: "shop:2"},
		Stages: []v1alpha1.RolloutStageStatus{
			{Number: 1, State: "Running", TrafficPercentage: new(v1alpha1.Percent(10)), HealthThreshold: new(v1alpha1.Percent(95)), DurationSeconds: new(int64(60)), StartTime: before(2 * time.Minute)},
			{Number: 2, State: "Pending", TrafficPercentage: new(v1alpha1.Percent(50))},
		},
	}, Analysis: &v1alpha1.RolloutAnalysis{Run: 7, Stage: 1, HealthResult: v1alpha1.HealthResult{Verdict: "Pass", Message: "all is well"}}}
	return r
}

func TestExplain_NamesTheGatesThatHold(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ABRelease)
		want   string
	}{
		"nothing holds":                {func(*v1alpha1.ABRelease) {}, ""},
		"a pause":                      {func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Pause = v1alpha1.Enabled }, "Pause Holds"},
		"a spec that was not read yet": {func(r *v1alpha1.ABRelease) { r.Generation = 2 }, "Spec Unknown"},
		"too few pods for the next percentage": {
			func(r *v1alpha1.ABRelease) { r.Status.Observed[0].ReadyEndpoints = 1 }, "Pods Holds",
		},
		"pods that are not known": {func(r *v1alpha1.ABRelease) { r.Status.Observed = nil }, "Pods Unknown, ObservedShare Unknown"},
		"proxies that are late": {
			func(r *v1alpha1.ABRelease) {
				r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: "Acknowledgment"}
			}, "Proxies Holds",
		},
		"routers that are late": {
			func(r *v1alpha1.ABRelease) {
				r.Spec.Routers = []v1alpha1.ReleaseRouter{{Name: "edge"}}
				r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: "Acknowledgment"}
			}, "Routers Holds",
		},
		"proxies that are missing beside another wait": {func(r *v1alpha1.ABRelease) { r.Status.Acknowledged.AcknowledgedProxies = 2 }, "Proxies Unknown"},
		"proxies that are not known":                   {func(r *v1alpha1.ABRelease) { r.Status.Acknowledged = nil }, "Proxies Unknown"},
		"a contradiction": {
			func(r *v1alpha1.ABRelease) { r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: "Contradicted"} }, "ObservedShare Holds",
		},
		"a clock that stands": {
			func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Stages[0].StopTime = before(100 * time.Second) }, "Counts Holds, MinimumTime Holds",
		},
		"a clock that has not begun": {
			func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Stages[0].StartTime = nil }, "Counts Unknown, MinimumTime Unknown",
		},
		"a verdict about another stage": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Analysis.Stage = 2 }, "Verdict Unknown"},
		"an undecided judge":            {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Analysis.Verdict = "Undecided" }, "Verdict Holds"},
		"a verdict of a later version":  {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Analysis.Verdict = "Later" }, "Verdict Unknown"},
		"a stage that passed before": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Run.Stages[0].PassTime = before(0)
			r.Status.Rollout.Analysis = nil
		}, ""},
		"an approval": {
			func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.Stages[0].RequireApproval = v1alpha1.Enabled }, "Approval Holds",
		},
		"a strategy that waits for a person": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.AutoAdvance = v1alpha1.Disabled }, "AutoAdvance Holds"},
		"a manual start": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Run.State, r.Status.Rollout.Stage, r.Status.Rollout.Waiting = "Created", 0, &v1alpha1.RolloutWait{Reason: "ManualStart"}
		}, "Start Holds"},
		"a strategy that is not there, after the end": {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.State = "Completed" }, "Strategy Holds"},
		"a rejected revision": {func(r *v1alpha1.ABRelease) {
			r.Spec.Rollout.StrategyName, r.Spec.Rollout.Strategy = "", &v1alpha1.RolloutStrategySpec{Stages: []v1alpha1.RolloutStage{{TrafficPercentage: new(v1alpha1.Percent(100))}}}
			r.Status.Rollout.Run.State, r.Status.Rollout.Waiting = "RolledBack", &v1alpha1.RolloutWait{Reason: "RevisionRejected"}
		}, "Revision Holds"},
		"a spec that cannot be carried out": {func(r *v1alpha1.ABRelease) {
			r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: "InvalidSpec"}
		}, "Spec Holds"},
	} {
		t.Run(name, func(t *testing.T) {
			r := underWay()
			tc.change(r)
			e := Explain(&Question{Release: r, Now: noon})
			var got []string
			for _, g := range e.Gates {
				if g.State != GateOK {
					got = append(got, g.Name+" "+string(g.State))
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// `release why` printed "wants 95 % successful: ;" for a verdict without a message.
func TestExplain_NoEmptyReasonOfAVerdict(t *testing.T) {
	const measured = "b has at least 99.5 % successful in 1000 requests"
	for name, tc := range map[string]struct{ message, want string }{
		"a message":  {"all is well", "Pass, wants 95 % successful: all is well; " + measured},
		"no message": {"", "Pass, wants 95 % successful; " + measured},
	} {
		t.Run(name, func(t *testing.T) {
			r := underWay()
			a := r.Status.Rollout.Analysis
			a.Message, a.Variations = tc.message, []v1alpha1.VariationHealth{{Variation: "b", HealthPercentage: "99.5", Samples: 1000}}
			e := Explain(&Question{Release: r, Now: noon})
			i := slices.IndexFunc(e.Gates, func(g Gate) bool { return g.Name == "Verdict" })
			if diff := cmp.Diff(tc.want, e.Gates[i].Value); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplain_StrategyThatMayNotBeRead(t *testing.T) {
	r := underWay()
	r.Status.Rollout.Run.State = "Completed"
	e := Explain(&Question{Release: r, StrategyUnread: "forbidden", Now: noon})
	if i := slices.IndexFunc(e.Gates, func(g Gate) bool { return g.Name == "Strategy" }); e.Gates[i].State != GateUnknown {
		t.Errorf("%+v", e.Gates[i])
	}
	if e := Explain(&Question{Release: &v1alpha1.ABRelease{}, Now: noon}); e.Gates != nil {
		t.Errorf("without a rollout: %+v", e)
	}
}

// The pods that a percentage needs are the least number whose part of the capacity is not below the percentage.
func TestRequiredPods_IsTheLeastNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight, capacity := rapid.Int64Range(0, basisPoints).Draw(t, "weight"), rapid.Int32Range(0, 500).Draw(t, "capacity")
		want := int32(1)
		for int64(want)*basisPoints < weight*int64(capacity) {
			want++
		}
		if got := requiredPods(float64(weight)/100, capacity); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}
