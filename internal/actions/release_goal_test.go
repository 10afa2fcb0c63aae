// SPDX-License-Identifier: Apache-2.0

package actions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func inRun(number int64, state v1alpha1.RunState, waiting string, stages ...v1alpha1.RolloutStageState) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{}
	r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: number, State: state, Message: "why"}}
	for i, s := range stages {
		r.Status.Rollout.Run.Stages = append(r.Status.Rollout.Run.Stages, v1alpha1.RolloutStageStatus{Number: int32(i + 1), State: s})
	}
	if waiting != "" {
		r.Status.Rollout.Waiting = &v1alpha1.RolloutWait{Reason: waiting}
	}
	return r
}

func TestParseReleaseGoal(t *testing.T) {
	for text, want := range map[string]actions.ReleaseGoal{
		"": {}, "Completed": {State: "Completed"}, "RolledBack": {State: "RolledBack"}, "Ended": {State: "Ended"}, "Stage=3": {Stage: 3}, "Waiting=Approval": {Waiting: "Approval"},
	} {
		got, err := actions.ParseReleaseGoal(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil || got.String() != text {
			t.Errorf("%q is %q, %v (-want +got):\n%s", text, got, err, diff)
		}
	}
	for _, text := range []string{"completed", "Stage", "Stage=0", "Stage=17", "Stage=x", "Waiting", "Waiting=", "Running", "Completed=1", "=", " "} {
		if got, err := actions.ParseReleaseGoal(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestAReleaseGoalIsAboutOneRun(t *testing.T) {
	cases := map[string]struct {
		goal    string
		run     int64
		begins  *v1alpha1.ABRelease
		now     *v1alpha1.ABRelease
		reached bool
		missed  string
	}{
		"before the first run the first one is meant":     {goal: "Completed", begins: &v1alpha1.ABRelease{}, now: inRun(1, "Completed", ""), reached: true},
		"the run that is on is meant":                     {goal: "Completed", begins: inRun(7, "Running", ""), now: inRun(7, "Completed", ""), reached: true},
		"after an end the next run is meant":              {goal: "Completed", begins: inRun(7, "Completed", ""), now: inRun(7, "Completed", "")},
		"and is reached when it ends so":                  {goal: "RolledBack", begins: inRun(7, "Completed", ""), now: inRun(8, "RolledBack", ""), reached: true},
		"a run that is named may have ended":              {goal: "Completed", run: 7, begins: inRun(7, "Completed", ""), now: inRun(7, "Completed", ""), reached: true},
		"another end is no more to be reached":            {goal: "Completed", begins: inRun(7, "Running", ""), now: inRun(7, "RolledBack", ""), missed: "run 7 is RolledBack: why"},
		"a run that was followed by another one is over":  {goal: "Completed", begins: inRun(7, "Running", ""), now: inRun(8, "Running", ""), missed: "run 7 is over: run 8 follows"},
		"either end is an end":                            {goal: "Ended", begins: inRun(7, "Running", ""), now: inRun(7, "RolledBack", ""), reached: true},
		"a stage has begun":                               {goal: "Stage=2", begins: inRun(7, "Running", ""), now: inRun(7, "Running", "", "Succeeded", "Running"), reached: true},
		"or a later one has":                              {goal: "Stage=1", begins: inRun(7, "Running", ""), now: inRun(7, "Running", "", "Skipped", "Running"), reached: true},
		"a stage that is pending has not":                 {goal: "Stage=2", begins: inRun(7, "Running", ""), now: inRun(7, "Running", "", "Running", "Pending")},
		"a wait":                                          {goal: "Waiting=Approval", begins: inRun(7, "Running", ""), now: inRun(7, "Running", "Approval"), reached: true},
		"another wait is none":                            {goal: "Waiting=Approval", begins: inRun(7, "Running", ""), now: inRun(7, "Running", "MinimumTime")},
		"a wait of a run that has ended is not to be had": {goal: "Waiting=Approval", begins: inRun(7, "Running", ""), now: inRun(7, "Completed", ""), missed: "run 7 is Completed: why"},
		"without a goal nothing is missed":                {begins: inRun(7, "Running", ""), now: inRun(7, "RolledBack", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			goal, err := actions.ParseReleaseGoal(tc.goal)
			if err != nil {
				t.Fatal(err)
			}
			goal.Run = tc.run
			reached, missed := goal.For(tc.begins).Check(tc.now)
			if reached != tc.reached || missed != tc.missed {
				t.Errorf("reached %v, missed %q; want %v, %q", reached, missed, tc.reached, tc.missed)
			}
		})
	}
}
