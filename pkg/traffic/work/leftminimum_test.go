// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

func TestLeftMinimum(t *testing.T) {
	const two, six, none = `{"spec":{"maxReplicas":10,"minReplicas":2}}`, `{"spec":{"maxReplicas":10,"minReplicas":6}}`, `{"spec":{"maxReplicas":10}}`
	const eight = `{"spec":{"maxReplicas":10,"minReplicas":8}}`
	cases := map[string]struct {
		replicas           int32
		held               *v1alpha1.HeldAutoscaler
		before, authorized string
		want               string
	}{
		"the minimum is raised":                  {6, holding(2, 6), two, two, six},
		"it is raised further":                   {8, holding(2, 8), two, six, eight},
		"an absent minimum is 1":                 {6, holding(1, 6), none, none, six},
		"the work found a drift":                 {6, holding(1, 6), two, two, ""},
		"a person lowered what a run had raised": {8, holding(4, 8), two, six, ""},
		"the work has written nothing":           {6, nil, two, two, ""},
		"the work puts back":                     {0, holding(2, 6), two, six, ""},
		"a body that cannot be read":             {6, holding(2, 6), "[", two, "error"},
		"an authorized body that cannot be read": {6, holding(2, 6), two, "{", "error"},
		"a body of another shape":                {6, holding(2, 6), two, `{"spec":3}`, "error"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &v1alpha1.ReleaseWork{Spec: v1alpha1.ReleaseWorkSpec{Verb: v1alpha1.WorkHoldMinReplicas, Replicas: &tc.replicas}}
			w.Status.Held = tc.held
			got, err := work.LeftMinimum(w, []byte(tc.before), []byte(tc.authorized))
			if tc.want == "error" {
				if err == nil {
					t.Errorf("got %s", got)
				}
				return
			}
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, want %s; %v", got, tc.want, err)
			}
		})
	}
}

func TestTheLabelOfAnAutoscalerNamesAWorkAboutItsMinimum(t *testing.T) {
	about := func(number int64, verb v1alpha1.ReleaseWorkVerb, uid string) v1alpha1.ReleaseWork {
		w := v1alpha1.ReleaseWork{Spec: v1alpha1.ReleaseWorkSpec{ReleaseName: "web", ReleaseUID: "r", Run: 3, Number: number, Verb: verb, Variation: "stable"}}
		w.UID, w.Status.Intent = types.UID("w"+string(rune('0'+number))), &v1alpha1.ReleaseWorkIntent{UID: uid}
		return w
	}
	hold := v1alpha1.WorkHoldMinReplicas
	cases := map[string]struct {
		works []v1alpha1.ReleaseWork
		mark  work.Mark
		is    bool
	}{
		"the autoscaler of the work":          {[]v1alpha1.ReleaseWork{about(1, hold, "a")}, work.Mark{UID: "w1", Autoscaler: "a"}, true},
		"another autoscaler":                  {[]v1alpha1.ReleaseWork{about(1, hold, "a")}, work.Mark{UID: "w1", Autoscaler: "b"}, false},
		"a work about a Deployment":           {[]v1alpha1.ReleaseWork{about(1, v1alpha1.WorkScale, "a")}, work.Mark{UID: "w1", Autoscaler: "a"}, false},
		"a Deployment with the label of hold": {[]v1alpha1.ReleaseWork{about(1, hold, "a")}, work.Mark{UID: "w1", Target: ""}, false},
		"a later work about the autoscaler":   {[]v1alpha1.ReleaseWork{about(1, hold, "a"), about(2, hold, "a")}, work.Mark{UID: "w1", Autoscaler: "a"}, false},
		"a later work about another one":      {[]v1alpha1.ReleaseWork{about(1, hold, "a"), about(2, hold, "b")}, work.Mark{UID: "w1", Autoscaler: "a"}, true},
		"a later work about a Deployment":     {[]v1alpha1.ReleaseWork{about(1, hold, "a"), about(2, v1alpha1.WorkScale, "a")}, work.Mark{UID: "w1", Autoscaler: "a"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{}
			r.Name, r.UID = "web", "r"
			r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 3}}
			tc.mark.Works, tc.mark.Release = tc.works, r
			if got := tc.mark.Last() != nil; got != tc.is {
				t.Errorf("the label counts: %t", got)
			}
		})
	}
}
