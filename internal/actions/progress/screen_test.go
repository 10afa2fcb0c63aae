// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(-d))) }

func TestStage_MeasuredTime(t *testing.T) {
	for name, tc := range map[string]struct {
		stage v1alpha1.RolloutStageStatus
		want  time.Duration
	}{
		"a stage whose clock has not begun":      {v1alpha1.RolloutStageStatus{ShiftTime: before(time.Minute)}, 0},
		"a stage under way":                      {v1alpha1.RolloutStageStatus{StartTime: before(4 * time.Minute)}, 4 * time.Minute},
		"a clock that stood before":              {v1alpha1.RolloutStageStatus{StartTime: before(4 * time.Minute), StoppedSeconds: 60}, 3 * time.Minute},
		"a clock that stands":                    {v1alpha1.RolloutStageStatus{StartTime: before(4 * time.Minute), StopTime: before(time.Minute)}, 3 * time.Minute},
		"a stage that is over":                   {v1alpha1.RolloutStageStatus{StartTime: before(time.Hour), CompletionTime: before(50 * time.Minute)}, 10 * time.Minute},
		"a start that is later than now is none": {v1alpha1.RolloutStageStatus{StartTime: before(-time.Minute)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := measured(&tc.stage, noon).Duration; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestScreen_SaysWhatFollows(t *testing.T) {
	for name, tc := range map[string]struct {
		stage    int32
		approval v1alpha1.Toggle
		advance  v1alpha1.Toggle
		state    v1alpha1.RunState
		author   string
		want     string
	}{
		"the next stage":                             {1, v1alpha1.Disabled, v1alpha1.Enabled, "Running", "ada", "50 %"},
		"an approval comes before it":                {1, v1alpha1.Enabled, v1alpha1.Enabled, "Running", "", "50 %, after an approval"},
		"an approval by another user than an author": {1, v1alpha1.Enabled, v1alpha1.Enabled, "Running", "ada", "50 %, after an approval by another user than ada"},
		"a person comes before it":                   {1, v1alpha1.Disabled, v1alpha1.Disabled, "Running", "", "50 %, after the verb Advance"},
		"the last stage is followed by the end":      {2, v1alpha1.Disabled, v1alpha1.Disabled, "Running", "", "all requests to green for good"},
		"nothing follows the end":                    {1, v1alpha1.Disabled, v1alpha1.Enabled, "RolledBack", "", ""},
		"nothing follows no stage":                   {0, v1alpha1.Disabled, v1alpha1.Enabled, "Deploying", "", ""},
		"nothing follows a stage that is none":       {3, v1alpha1.Disabled, v1alpha1.Enabled, "Running", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := &v1alpha1.RolloutRun{State: tc.state, AutoAdvance: tc.advance, To: v1alpha1.VariationRevision{Variation: "green"}, Stages: []v1alpha1.RolloutStageStatus{
				{Number: 1, TrafficPercentage: new(v1alpha1.Percent(10)), RequireApproval: tc.approval}, {Number: 2, TrafficPercentage: new(v1alpha1.Percent(50))},
			}}
			r := &v1alpha1.ABRelease{Spec: v1alpha1.ABReleaseSpec{Rollout: &v1alpha1.Rollout{}}}
			if r.Status.Rollout = (&v1alpha1.RolloutStatus{Run: run, Stage: tc.stage}); tc.author != "" {
				run.Approval, run.Author = v1alpha1.ApprovalNotAuthor, tc.author
			}
			if got := nextOf(r); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestScreen_TellsVariations(t *testing.T) {
	release := func() *v1alpha1.ABRelease {
		r := &v1alpha1.ABRelease{}
		r.Spec.Stable, r.Spec.Variations = "a", []v1alpha1.Variation{{Name: "b"}, {Name: "a"}}
		r.Status.Wanted = []v1alpha1.WantedWeight{{Variation: "a", Weight: new(int32(9975))}}
		r.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: 5, Variations: []v1alpha1.EffectiveVariation{{Name: "a", Weight: new(int32(10000))}}}
		return r
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ABRelease)
		want   []Variation
	}{
		"the stable variation is first": {
			func(*v1alpha1.ABRelease) {}, []Variation{{Name: "a", Wanted: new(99.75)}, {Name: "b"}},
		},
		"what each proxy has acknowledged is known": {
			func(r *v1alpha1.ABRelease) { r.Status.Acknowledged = &v1alpha1.SplitAcknowledgment{Sequence: 5} },
			[]Variation{{Name: "a", Wanted: new(99.75), Acknowledged: new(100.0)}, {Name: "b"}},
		},
		"an older sequence says nothing about weights": {
			func(r *v1alpha1.ABRelease) { r.Status.Acknowledged = &v1alpha1.SplitAcknowledgment{Sequence: 4} },
			[]Variation{{Name: "a", Wanted: new(99.75)}, {Name: "b"}},
		},
		"a count that is missing leaves the rounded share": {
			func(r *v1alpha1.ABRelease) {
				r.Status.ActiveVariation = "b"
				r.Status.Observed = []v1alpha1.ObservedVariation{{Variation: "a", Requests: new(int64(5)), SharePercent: new(int32(33))}, {Variation: "b"}}
			},
			[]Variation{
				{Name: "b", Ready: new(int32(0)), Targets: new(int32(0))},
				{Name: "a", Wanted: new(99.75), Observed: new(33.0), Ready: new(int32(0)), Targets: new(int32(0))},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := release()
			tc.change(r)
			if diff := cmp.Diff(tc.want, ScreenOf(r, noon).Variations); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
