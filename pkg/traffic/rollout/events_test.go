// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

func TestTheWordsOfAStageHaveItsNumber(t *testing.T) {
	tests := map[string]struct {
		event   rollout.EventName
		message string
		want    int32
	}{
		"a stage that starts":              {rollout.StageStarted, "Starting canary stage 2: 25%", 2},
		"a stage that passed":              {rollout.StagePassed, "stage 16 passed: healthy", 16},
		"a stage that failed":              {rollout.StageHasFailed, "Stage 1 failed health check: stage 7 is none", 1},
		"an event of the run":              {rollout.StageAdvanced, "stage 3 is none", 0},
		"unknown words":                    {rollout.StageStarted, "It begins: stage 2", 0},
		"a number that no stage can have":  {rollout.StagePassed, "stage 123 passed", 0},
		"a stage of no number":             {rollout.StagePassed, "stage 0 passed", 0},
		"an event without words":           {rollout.StageStarted, "", 0},
		"a measurement that was made void": {rollout.MeasurementVoided, "the measurement of stage 2 restarts", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rollout.StageOf(tc.event, tc.message); got != tc.want {
				t.Errorf("%s %q is about stage %d, want %d", tc.event, tc.message, got, tc.want)
			}
		})
	}
}

// The words are those that decisions write.
func TestDecisionsWriteTheNumberOfTheStage(t *testing.T) {
	f := underWay(func(f *rollout.Facts) {
		f.Control = &rollout.Control{Verb: rollout.VerbAdvance, Run: 3, RequestedBy: "ada"}
	})
	got := map[rollout.EventName]int32{}
	for _, e := range rollout.Decide(f).Events {
		got[e.Name] = rollout.StageOf(e.Name, e.Message)
	}
	want := map[rollout.EventName]int32{rollout.StageAdvanced: 0, rollout.StageStarted: 2, rollout.VerbAnswered: 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
