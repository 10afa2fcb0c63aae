// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func TestFindHolder(t *testing.T) {
	const run = "run 3 of ABRelease web"
	tests := map[string]struct {
		change          func(*v1alpha1.ABRelease)
		namespace, kind string
		name            string
		want            string
	}{
		"the stable variation":     {nil, "shop", "Deployment", "web", run},
		"the clone":                {nil, "shop", "Deployment", "web-canary", run},
		"another workload":         {nil, "shop", "Deployment", "db", ""},
		"another kind of the name": {nil, "shop", "StatefulSet", "web", ""},
		"another namespace":        {nil, "bank", "Deployment", "web", ""},
		"a canary that is no clone": {func(r *v1alpha1.ABRelease) {
			r.Spec.Variations[1] = v1alpha1.Variation{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "b"}}
		}, "shop", "Deployment", "b", run},
		"a variation without a workload":       {func(r *v1alpha1.ABRelease) { r.Spec.Variations[0].Workload = nil }, "shop", "Deployment", "web", ""},
		"a release without a run":              {func(r *v1alpha1.ABRelease) { r.Status.Rollout = nil }, "shop", "Deployment", "web", ""},
		"a run that waits for its start":       {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.State = "Created" }, "shop", "Deployment", "web", run},
		"a run that has ended":                 {func(r *v1alpha1.ABRelease) { r.Status.Rollout.Run.State = "RolledBack" }, "shop", "Deployment", "web", ""},
		"a run that has ended, with a work on": {func(r *v1alpha1.ABRelease) { endWith(r, v1alpha1.WorkRunning) }, "shop", "Deployment", "web-canary", run},
		"a group":                              {divide("Running", nil), "shop", "Deployment", "worker-next", run},
		"a group that is owed its replicas":    {divide("RolledBack", nil), "shop", "Deployment", "worker", run},
		"a group that has its replicas back":   {divide("RolledBack", new(metav1.Now())), "shop", "Deployment", "worker", ""},
		"a group beside a workload":            {pair, "shop", "Deployment", "worker-next", run},
		"a workload beside a group":            {pair, "shop", "Deployment", "web", run},
		"an autoscaler that is held":           {held, "shop", "HorizontalPodAutoscaler", "web-scaler", run},
		"another autoscaler":                   {held, "shop", "HorizontalPodAutoscaler", "web", ""},
		"a Deployment named as an autoscaler":  {held, "shop", "Deployment", "web-scaler", ""},
		"a run that has ended, with all done":  {func(r *v1alpha1.ABRelease) { endWith(r, v1alpha1.WorkSucceeded) }, "shop", "Deployment", "web-canary", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			r.Spec.Stable = "stable"
			r.Spec.Variations = []v1alpha1.Variation{
				{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}},
				{Name: "canary", Clone: &v1alpha1.VariationClone{Image: "shop:2"}},
			}
			r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 3, State: "Running"}}
			if tc.change != nil {
				tc.change(&r)
			}
			if got := rollout.FindHolder([]v1alpha1.ABRelease{r}, tc.namespace, tc.kind, tc.name); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// held has the run hold the minimum of an autoscaler.
func held(r *v1alpha1.ABRelease) {
	r.Status.Rollout.Hold = &v1alpha1.RolloutHold{Run: 3, Number: 1, Variation: "stable", Replicas: 6, Autoscaler: &v1alpha1.HeldAutoscaler{
		Name: "web-scaler", UID: "a", FormerMinReplicas: new(int32(2)), MinReplicas: new(int32(6)),
	}}
}

// pair has a group beside each workload.
func pair(r *v1alpha1.ABRelease) {
	divide("Running", nil)(r)
	for i, name := range []string{"web", "web-next"} {
		r.Spec.Variations[i].Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: name}
	}
	r.Spec.Rollout = &v1alpha1.Rollout{Model: v1alpha1.RolloutModelHybrid}
}

// divide has the run divide the replicas of groups.
func divide(state v1alpha1.RunState, settled *metav1.Time) func(*v1alpha1.ABRelease) {
	return func(r *v1alpha1.ABRelease) {
		for i, name := range []string{"worker", "worker-next"} {
			r.Spec.Variations[i] = v1alpha1.Variation{Name: r.Spec.Variations[i].Name, Group: &v1alpha1.VariationGroup{Kind: v1alpha1.VariationGroupDeployment, Name: name}}
		}
		r.Status.Rollout.Run.State = state
		r.Status.Rollout.Run.Division = &v1alpha1.RolloutDivision{Replicas: new(int32(4)), Active: new(int32(3)), Canary: new(int32(1)), SettlementTime: settled}
	}
}

// endWith has the run of a release be over, and its last work in a phase.
func endWith(r *v1alpha1.ABRelease, phase v1alpha1.ReleaseWorkPhase) {
	r.Status.Rollout.Run.State = "Completed"
	r.Status.Rollout.Works = []v1alpha1.RolloutWork{{Number: 4, Run: 3, Verb: v1alpha1.WorkScale, Replicas: new(int32(0)), Phase: phase}}
}

// A work that a guard distrusts waits for a person, and a work that has ended waits for no guard.
func TestAnswersOfTellsOfAGuardThatDistrusts(t *testing.T) {
	for name, tc := range map[string]struct {
		phase   v1alpha1.ReleaseWorkPhase
		reason  v1alpha1.ReleaseWorkReason
		want    bool
		message string
	}{
		"a work that waits for trust":        {v1alpha1.WorkPending, v1alpha1.WorkRequesterNotTrusted, true, "says why"},
		"between intent and write":           {v1alpha1.WorkRunning, v1alpha1.WorkRequesterNotTrusted, true, "says why"},
		"a work that waits for a right":      {v1alpha1.WorkPending, v1alpha1.WorkNotAllowed, false, "NotAllowed: says why"},
		"a work that has ended all the same": {v1alpha1.WorkRefused, v1alpha1.WorkRequesterNotTrusted, false, "RequesterNotTrusted: says why"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}}
			w := v1alpha1.ReleaseWork{Spec: v1alpha1.ReleaseWorkSpec{ReleaseName: "web", ReleaseUID: "u", Run: 1, Number: 1}}
			w.Status = v1alpha1.ReleaseWorkStatus{Phase: tc.phase, Reason: tc.reason, Message: "says why"}
			got := rollout.AnswersOf(r, []v1alpha1.ReleaseWork{w})
			if len(got) != 1 || got[0].Distrusted != tc.want || got[0].Message != tc.message {
				t.Errorf("the answers are %+v", got)
			}
		})
	}
}
