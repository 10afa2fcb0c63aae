// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestGoal_IsRead(t *testing.T) {
	for text, want := range map[string]Goal{
		"": {}, "Completed": {Kind: GoalCompleted}, "Ended": {Kind: GoalEnded}, "Stage=2": {Kind: GoalStage, Stage: 2},
		"Waiting=Approval": {Kind: GoalWaiting, Reason: "Approval"},
	} {
		if got, err := ParseGoal(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"completed", "Stage", "Stage=0", "Stage=17", "Stage=x", "Stage=99999999999", "Waiting", "Waiting=", "Waiting=Rain", "Ended=", "="} {
		if got, err := ParseGoal(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
	for _, text := range Goals() {
		if _, err := ParseGoal(text); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParseGoal(f *testing.F) {
	f.Add("Stage=2")
	f.Add("Waiting=Approval")
	f.Fuzz(func(t *testing.T, text string) {
		goal, err := ParseGoal(text)
		if err != nil && goal != (Goal{}) {
			t.Errorf("an error with %+v", goal)
		}
		if err == nil && (goal.Kind == GoalStage) != (goal.Stage > 0) {
			t.Errorf("%+v", goal)
		}
	})
}

func TestGoal_IsJudged(t *testing.T) {
	status := func(state v1alpha1.RunState, stage int32, wait string) *v1alpha1.RolloutStatus {
		in := &v1alpha1.RolloutStatus{Stage: stage, Run: &v1alpha1.RolloutRun{Number: 7, State: state, Stages: make([]v1alpha1.RolloutStageStatus, 3)}}
		if wait != "" {
			in.Waiting = &v1alpha1.RolloutWait{Reason: wait}
		}
		return in
	}
	for name, tc := range map[string]struct {
		until string
		run   int64
		in    *v1alpha1.RolloutStatus
		want  Outcome
	}{
		"no status":                                {"Ended", 0, nil, Awaited},
		"no run":                                   {"Ended", 0, &v1alpha1.RolloutStatus{}, Awaited},
		"no goal is never reached":                 {"", 0, status("Completed", 0, ""), Awaited},
		"a run under way":                          {"Completed", 0, status("Running", 1, ""), Awaited},
		"completed, as awaited":                    {"Completed", 0, status("Completed", 0, ""), Reached},
		"rolled back instead":                      {"Completed", 0, status("RolledBack", 0, ""), Missed},
		"rolled back, as awaited":                  {"RolledBack", 0, status("RolledBack", 0, ""), Reached},
		"completed instead":                        {"RolledBack", 0, status("Completed", 0, ""), Missed},
		"either end":                               {"Ended", 0, status("RolledBack", 0, ""), Reached},
		"an older run does not count":              {"Ended", 8, status("RolledBack", 0, ""), Awaited},
		"the run that is named counts":             {"Ended", 7, status("RolledBack", 0, ""), Reached},
		"an earlier stage":                         {"Stage=2", 0, status("Running", 1, ""), Awaited},
		"the stage":                                {"Stage=2", 0, status("Running", 2, ""), Reached},
		"a later stage":                            {"Stage=2", 0, status("Running", 3, ""), Reached},
		"a completed run went through each stage":  {"Stage=2", 0, status("Completed", 0, ""), Reached},
		"a promotion is after each stage":          {"Stage=3", 0, status("Promoting", 0, ""), Reached},
		"a run that went back":                     {"Stage=2", 0, status("RolledBack", 0, ""), Missed},
		"a stage that the run does not have":       {"Stage=4", 0, status("Running", 1, ""), Missed},
		"the wait":                                 {"Waiting=Approval", 0, status("Running", 1, "Approval"), Reached},
		"another wait":                             {"Waiting=Approval", 0, status("Running", 1, "NoData"), Awaited},
		"a wait of a run that has ended":           {"Waiting=RevisionRejected", 0, status("RolledBack", 0, "RevisionRejected"), Reached},
		"an end without the wait":                  {"Waiting=Approval", 0, status("Completed", 0, ""), Missed},
		"a run that another one has followed":      {"Completed", 6, status("Completed", 0, ""), Missed},
		"a state of a later version is no end yet": {"Ended", 0, status("Later", 1, ""), Awaited},
	} {
		t.Run(name, func(t *testing.T) {
			goal, err := ParseGoal(tc.until)
			if err != nil {
				t.Fatal(err)
			}
			goal.Run = tc.run
			if diff := cmp.Diff(tc.want, goal.Judge(tc.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoal_IsAboutOneRun(t *testing.T) {
	status := func(state v1alpha1.RunState) *v1alpha1.RolloutStatus {
		return &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 7, State: state}}
	}
	queued := status("Running")
	queued.Run.Clone = &v1alpha1.RolloutClone{QueuedTime: new(metav1.Now())}
	for name, tc := range map[string]struct {
		run  int64
		in   *v1alpha1.RolloutStatus
		want int64
	}{
		"the first one before any":         {0, nil, 1},
		"the first one without a run":      {0, &v1alpha1.RolloutStatus{}, 1},
		"the run that is on":               {0, status("Promoting"), 7},
		"the next one while it is queued":  {0, queued, 8},
		"the next one after a promotion":   {0, status("Completed"), 8},
		"the next one after a rollback":    {0, status("RolledBack"), 8},
		"the one that is named has ended":  {7, status("Completed"), 7},
		"the one that is named is to come": {9, status("Running"), 9},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Goal{Kind: GoalEnded, Run: tc.run}).For(tc.in); got.Run != tc.want {
				t.Errorf("run %d, want %d", got.Run, tc.want)
			}
		})
	}
}
