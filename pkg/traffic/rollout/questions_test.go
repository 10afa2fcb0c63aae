// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// A gate that nothing asks never passes, and a person who is refused by it waits for ever.
func TestGatesAreAskedAheadOnceARunCanGoOn(t *testing.T) {
	begun := func(s *rollout.StageStatus) { s.StartTime = noon }
	passed := func(s *rollout.StageStatus) { begun(s); s.PassTime = noon }
	failed := func(s *rollout.StageStatus) { begun(s); s.State = rollout.StageFailed }
	refused := func(verb rollout.Verb, stage int, refusal string) rollout.State {
		s := onStage(1, begun)
		s.Handled = &rollout.Handled{Control: rollout.Control{Verb: verb, Run: 3, Stage: stage}, Refusal: refusal}
		return s
	}
	of := func(s rollout.State, change func(*rollout.State)) rollout.State { change(&s); return s }
	const gate = "Gate: the query has not passed"
	tests := map[string]struct {
		state rollout.State
		want  []string
	}{
		"no run":                                      {rollout.State{}, nil},
		"before the first stage":                      {of(onStage(0), func(s *rollout.State) { s.Run.State = rollout.Deploying }), []string{"BeforeStage 1"}},
		"a stage whose clock has not begun":           {onStage(1), nil},
		"a stage that is measured":                    {onStage(1, begun), []string{"DuringStage 1"}},
		"a stage that has passed":                     {onStage(1, passed), []string{"DuringStage 1", "BeforeStage 2"}},
		"the last stage, which has passed":            {onStage(2, passed), []string{"DuringStage 2", "BeforePromotion 0"}},
		"a stage that has failed is measured no more": {onStage(1, failed), []string{"BeforeStage 2"}},
		"a stage that waits for a person":             {of(onStage(1, begun), func(s *rollout.State) { s.Waiting = &rollout.Wait{Reason: rollout.WaitUndecided} }), []string{"DuringStage 1", "BeforeStage 2"}},
		"a stage that waits for counts":               {of(onStage(1, begun), func(s *rollout.State) { s.Waiting = &rollout.Wait{Reason: rollout.WaitData} }), []string{"DuringStage 1"}},
		"a person asked for the next stage in vain":   {refused(rollout.VerbAdvance, 0, gate), []string{"DuringStage 1", "BeforeStage 2"}},
		"a person asked for a stage in vain":          {refused(rollout.VerbAdvance, 2, gate), []string{"DuringStage 1", "BeforeStage 2"}},
		"a person asked for this stage in vain":       {refused(rollout.VerbAdvance, 1, gate), []string{"DuringStage 1"}},
		"a person skipped a stage in vain":            {refused(rollout.VerbSkip, 0, gate), []string{"DuringStage 1", "BeforeStage 2"}},
		"a person promoted in vain":                   {refused(rollout.VerbPromote, 0, gate), []string{"DuringStage 1", "BeforePromotion 0"}},
		"a person approved in vain":                   {refused(rollout.VerbApprove, 0, gate), []string{"DuringStage 1"}},
		"a refusal without a gate":                    {refused(rollout.VerbPromote, 0, "the stage has not passed"), []string{"DuringStage 1"}},
		"a request that was carried out":              {refused(rollout.VerbPromote, 0, ""), []string{"DuringStage 1"}},
		"a refusal of another run":                    {of(refused(rollout.VerbPromote, 0, gate), func(s *rollout.State) { s.Handled.Run = 2 }), []string{"DuringStage 1"}},
		"a promotion under way":                       {of(onStage(2, passed), func(s *rollout.State) { s.Run.State = rollout.Promoting }), nil},
		"a run that is over":                          {of(onStage(2, passed), func(s *rollout.State) { s.Run.State = rollout.Completed }), nil},
	}
	webhooks := []gates.Webhook{
		{Name: "a", Event: gates.BeforeStage}, {Name: "b", Event: gates.DuringStage},
		{Name: "c", Event: gates.BeforePromotion}, {Name: "d", Event: gates.AfterRollback},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, q := range tc.state.Questions(webhooks, noon) {
				if got = append(got, fmt.Sprint(q.Event, " ", q.Stage)); q.Run != 3 {
					t.Errorf("it is about run %d", q.Run)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}
