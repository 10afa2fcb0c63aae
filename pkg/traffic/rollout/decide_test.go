// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// underWay are the facts about run 3 in its first stage at noon, whose weight proxies have acknowledged.
func underWay(change ...func(*rollout.Facts)) rollout.Facts {
	before := onStage(1, func(s *rollout.StageStatus) {
		s.ShiftTime, s.StartTime = noon.Add(-time.Minute), noon.Add(-time.Minute)
	})
	before.Active, before.Seen = "stable", map[string]rollout.Revision{"canary": {Hash: "c2"}}
	run := before.Run
	run.From, run.To, run.Capacity = rollout.Revision{Hash: "s1"}, rollout.Revision{Hash: "c2"}, 10
	run.Strategy = rollout.Strategy{AutoAdvance: true, RollbackOnFailure: true, Interval: rollout.MinInterval}
	for i := range run.Stages {
		run.Strategy.Stages = append(run.Strategy.Stages, run.Stages[i].Stage)
	}
	f := rollout.Facts{
		Stable: "stable", Variations: [2]string{"stable", "canary"}, Before: before, Now: noon,
		Plan: &rollout.Plan{
			Strategy: run.Strategy, Start: rollout.StartAutomatic, OnUndecided: rollout.UndecidedHold,
			Deadlines: rollout.Deadlines{Deployment: time.Minute, Acknowledgment: time.Minute, Approval: time.Hour, Extension: time.Minute},
		},
		Arms: map[string]rollout.Arm{
			"stable": {Revision: rollout.Revision{Hash: "s1"}, Ready: 10, Targets: 10, Updated: 10},
			"canary": {Revision: rollout.Revision{Hash: "c2"}, Ready: 10, Targets: 10, Updated: 10},
		},
		Standing: rollout.Standing{Active: "stable", Weight: 10_00, Acknowledged: true},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

// ready gives an arm so many endpoints.
func ready(variation string, n int) func(*rollout.Facts) {
	return func(f *rollout.Facts) {
		arm := f.Arms[variation]
		arm.Ready = n
		f.Arms[variation] = arm
	}
}

// The judge is told since when a canary is short of endpoints, from the first stage on.
func TestADecisionNotesSinceWhenACanaryIsShort(t *testing.T) {
	short := func(since time.Time) func(*rollout.Facts) {
		return func(f *rollout.Facts) { f.Before.Run.Stages[0].ShortSince = since }
	}
	tests := map[string]struct {
		change []func(*rollout.Facts)
		want   time.Time
	}{
		"a part of an endpoint counts as one":      {[]func(*rollout.Facts){ready("canary", 1), ready("stable", 10_001), func(f *rollout.Facts) { f.Before.Run.Stages[0].Weight = 1 }}, noon},
		"as many endpoints as the weight needs":    {[]func(*rollout.Facts){ready("canary", 1)}, time.Time{}},
		"no endpoint":                              {[]func(*rollout.Facts){ready("canary", 0)}, noon},
		"no endpoint, as before":                   {[]func(*rollout.Facts){ready("canary", 0), short(noon.Add(-time.Minute))}, noon.Add(-time.Minute)},
		"endpoints that came back":                 {[]func(*rollout.Facts){ready("canary", 1), short(noon.Add(-time.Minute))}, time.Time{}},
		"a canary that is not known stays short":   {[]func(*rollout.Facts){func(f *rollout.Facts) { delete(f.Arms, "canary") }, short(noon.Add(-time.Minute))}, noon.Add(-time.Minute)},
		"an active variation that has grown to 11": {[]func(*rollout.Facts){ready("canary", 1), ready("stable", 11)}, noon},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			run := rollout.Decide(underWay(tc.change...)).After.Run
			if got := run.Stages[0].ShortSince; !got.Equal(tc.want) {
				t.Errorf("short since %s, want %s", got, tc.want)
			}
		})
	}
}

// A label tells a revision whose hash a new version of Kubernetes changed from another revision.
func TestADecisionLearnsTheLabelsOfRevisions(t *testing.T) {
	labeled := func(variation, hash, label string) func(*rollout.Facts) {
		return func(f *rollout.Facts) {
			arm := f.Arms[variation]
			arm.Revision = rollout.Revision{Hash: hash, Label: label}
			f.Arms[variation] = arm
		}
	}
	type labels struct{ From, To, Seen string }
	tests := map[string]struct {
		change []func(*rollout.Facts)
		want   labels
	}{
		"pods of several revisions":       {nil, labels{}},
		"pods of the canary's revision":   {[]func(*rollout.Facts){labeled("canary", "c2", "rs-2")}, labels{To: "rs-2", Seen: "rs-2"}},
		"pods of the active revision":     {[]func(*rollout.Facts){labeled("stable", "s1", "rs-1")}, labels{From: "rs-1"}},
		"a label that is known stays":     {[]func(*rollout.Facts){labeled("canary", "c2", "rs-3"), func(f *rollout.Facts) { f.Before.Run.To.Label = "rs-2" }}, labels{To: "rs-2", Seen: "rs-3"}},
		"pods of another stable revision": {[]func(*rollout.Facts){labeled("stable", "s9", "rs-9")}, labels{From: "rs-9"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := rollout.Decide(underWay(tc.change...)).After
			if diff := cmp.Diff(tc.want, labels{after.Run.From.Label, after.Run.To.Label, after.Seen["canary"].Label}); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARunIsAdvancedForwardAlone(t *testing.T) {
	ask := func(stage int) func(*rollout.Facts) {
		return func(f *rollout.Facts) {
			f.Control = &rollout.Control{Verb: rollout.VerbAdvance, Run: 3, Stage: stage, RequestedBy: "ada"}
		}
	}
	second := func(f *rollout.Facts) {
		f.Before.Run.Stages[0].State, f.Before.Run.Stages[1].State = rollout.StageSucceeded, rollout.StageRunning
		f.Standing.Weight = traffic.Total
	}
	tests := map[string]struct {
		change  []func(*rollout.Facts)
		refusal string // its beginning
		stage   int
	}{
		"to the stage ahead":              {[]func(*rollout.Facts){ask(2)}, "", 2},
		"without a stage":                 {[]func(*rollout.Facts){ask(0)}, "", 2},
		"to the stage under way":          {[]func(*rollout.Facts){ask(1)}, "stage 1 is not behind stage 1", 1},
		"to the stage before":             {[]func(*rollout.Facts){second, ask(1)}, "stage 1 is not behind stage 2", 2},
		"behind the last stage":           {[]func(*rollout.Facts){ask(3)}, "there are 2 stages", 1},
		"from the last stage, to nowhere": {[]func(*rollout.Facts){second, ask(0)}, "there are 2 stages", 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			after := rollout.Decide(underWay(tc.change...)).After
			if h := after.Handled; h == nil || (h.Refusal == "") != (tc.refusal == "") || !strings.HasPrefix(h.Refusal, tc.refusal) {
				t.Errorf("it was handled as %+v, want the refusal %q", h, tc.refusal)
			}
			if got := after.Current(); got != tc.stage {
				t.Errorf("stage %d is under way, want %d", got, tc.stage)
			}
		})
	}
}

// Warnings are what people are woken by: what goes as planned is none.
func TestOnlyWhatNeedsAPersonIsAWarning(t *testing.T) {
	lags := func(f *rollout.Facts) { f.Standing.Acknowledged = false }
	overdue := func(f *rollout.Facts) {
		f.Before.Waiting = &rollout.Wait{Reason: rollout.WaitAcknowledgment, Since: noon.Add(-time.Minute), Deadline: noon}
	}
	told := func(run int64, event rollout.EventName, at time.Time) func(*rollout.Facts) {
		return func(f *rollout.Facts) {
			f.Before.History = []rollout.Entry{{Number: 7, Time: at, Run: run, Event: event}}
		}
	}
	advance := func(f *rollout.Facts) {
		f.Control = &rollout.Control{Verb: rollout.VerbAdvance, Run: 3, RequestedBy: "ada"}
	}
	begins := func(f *rollout.Facts) {
		f.Before = rollout.State{Active: "stable", Seen: map[string]rollout.Revision{"canary": {Hash: "c1"}}}
		f.Standing.Weight = 0
	}
	superseded := func(f *rollout.Facts) {
		arm := f.Arms["canary"]
		arm.Revision.Hash = "c3"
		f.Arms["canary"] = arm
		f.Plan = nil
	}
	type notice struct {
		Name    rollout.EventName
		Warning bool
	}
	overdueTold := []notice{{rollout.WaitOverdue, true}}
	tests := map[string]struct {
		change []func(*rollout.Facts)
		want   []notice
	}{
		"nothing happens":                            {nil, nil},
		"proxies that are in time":                   {[]func(*rollout.Facts){lags}, nil},
		"proxies that are late":                      {[]func(*rollout.Facts){lags, overdue}, overdueTold},
		"people were told already":                   {[]func(*rollout.Facts){lags, overdue, told(3, rollout.WaitOverdue, noon)}, nil},
		"people were told of a wait before":          {[]func(*rollout.Facts){lags, overdue, told(3, rollout.WaitOverdue, noon.Add(-time.Second))}, overdueTold},
		"people were told of another run":            {[]func(*rollout.Facts){lags, overdue, told(2, rollout.WaitOverdue, noon)}, overdueTold},
		"people were told of something else":         {[]func(*rollout.Facts){lags, overdue, told(3, rollout.StageStarted, noon)}, overdueTold},
		"a run that begins":                          {[]func(*rollout.Facts){begins}, []notice{{rollout.RunCreated, false}, {rollout.RunStarted, false}, {rollout.StageStarted, false}}},
		"a revision that another one has superseded": {[]func(*rollout.Facts){superseded}, []notice{{rollout.RunRolledBack, true}}},
		"a person who goes on":                       {[]func(*rollout.Facts){advance}, []notice{{rollout.StageAdvanced, false}, {rollout.StageStarted, false}, {rollout.VerbAnswered, false}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []notice
			for _, e := range rollout.Decide(underWay(tc.change...)).Events {
				got = append(got, notice{e.Name, e.Warning})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// A state that no version knows gives the canary no request.
func TestWeight(t *testing.T) {
	in := func(state rollout.RunState) rollout.State {
		s := onStage(1)
		s.Run.State = state
		return s
	}
	tests := map[string]struct {
		state rollout.State
		want  traffic.Weight
	}{
		"no run":                     {rollout.State{}, 0},
		"a stage":                    {onStage(1), 10_00},
		"a run before its stages":    {onStage(0), 0},
		"a run that is created":      {in(rollout.Created), 0},
		"a canary without pods":      {in(rollout.Deploying), 0},
		"a promotion":                {in(rollout.Promoting), traffic.Total},
		"a run that is complete":     {in(rollout.Completed), 0},
		"a run that rolled back":     {in(rollout.RolledBack), 0},
		"a state of a later version": {in("Pondering"), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.Weight(); got != tc.want {
				t.Errorf("the weight is %d, want %d", got, tc.want)
			}
		})
	}
}

// A label that a revision takes over from another one would keep the other one from ever being tried.
func TestARevisionTakesNoLabelOfAnother(t *testing.T) {
	f := underWay(func(f *rollout.Facts) {
		f.Before = rollout.State{Active: "stable", Seen: map[string]rollout.Revision{"canary": {Hash: "c1"}}}
		f.Standing.Weight = 0
		arm := f.Arms["canary"]
		arm.Revision.Label = "rs-2"
		f.Arms["canary"] = arm
	})
	run := rollout.Decide(f).After.Run
	if run == nil || run.To != (rollout.Revision{Hash: "c2", Label: "rs-2"}) {
		t.Errorf("the run is %+v, want one of the revision c2", run)
	}
}

// A run keeps the strategy that it began with, whatever becomes of the plan.
func TestARunSharesNoStrategyWithItsPlan(t *testing.T) {
	f := underWay(func(f *rollout.Facts) {
		f.Before = rollout.State{Active: "stable", Seen: map[string]rollout.Revision{"canary": {Hash: "c1"}}}
		f.Plan.Strategy.Queries = []gates.Query{{Name: "errors", PromQL: "up", Maximum: "1", FailureLimit: 1}}
	})
	run := rollout.Decide(f).After.Run
	if run == nil {
		t.Fatal("no run began")
	}
	f.Plan.Strategy.Stages[0].Weight, f.Plan.Strategy.Queries[0].Maximum = 99_00, "9"
	if stage, query := run.Strategy.Stages[0], run.Strategy.Queries[0]; stage.Weight != 10_00 || query.Maximum != "1" {
		t.Errorf("the run has the stage %+v and the query %+v of the plan", stage, query)
	}
}

// The naive twin counts endpoints up until they can carry the part of the capacity.
func TestACanaryNeedsItsPartOfTheCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 20_001).Draw(t, "capacity")
		weight := traffic.Weight(rapid.IntRange(1, int(traffic.Total)-1).Draw(t, "weight"))
		wants := 1
		for wants*int(traffic.Total) < capacity*int(weight) {
			wants++
		}
		for have, isShort := range map[int]bool{wants: false, wants - 1: true} {
			f := underWay(ready("stable", capacity), ready("canary", have), func(f *rollout.Facts) {
				f.Before.Run.Stages[0].Weight, f.Before.Run.Capacity = weight, capacity
			})
			if got := !rollout.Decide(f).After.Run.Stages[0].ShortSince.IsZero(); got != isShort {
				t.Fatalf("%d of %d for %d basis points: short is %t, want %t", have, capacity, weight, got, isShort)
			}
		}
	})
}

// The first stage without requests has a canary in the size of the second stage; one alone has any size.
func TestARunDeploysACanaryInTheSizeOfItsFirstRequests(t *testing.T) {
	tests := map[string]struct {
		weights []traffic.Weight
		ready   int
		want    rollout.RunState
	}{
		"the size of the first stage":             {[]traffic.Weight{20_00, traffic.Total}, 2, rollout.Running},
		"fewer than the first stage needs":        {[]traffic.Weight{20_00, traffic.Total}, 1, rollout.Deploying},
		"the size of the second stage":            {[]traffic.Weight{0, 50_00}, 5, rollout.Running},
		"fewer than the second stage needs":       {[]traffic.Weight{0, 50_00}, 4, rollout.Deploying},
		"one stage without requests, and one pod": {[]traffic.Weight{0}, 1, rollout.Running},
		"one stage without requests, and no pod":  {[]traffic.Weight{0}, 0, rollout.Deploying},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := underWay(ready("canary", tc.ready), func(f *rollout.Facts) {
				f.Before = rollout.State{Active: "stable", Seen: map[string]rollout.Revision{"canary": {Hash: "c1"}}}
				f.Standing.Weight = 0
				f.Plan.Strategy.Stages = nil
				for _, weight := range tc.weights {
					f.Plan.Strategy.Stages = append(f.Plan.Strategy.Stages, rollout.Stage{Weight: weight, Duration: time.Minute})
				}
			})
			if run := rollout.Decide(f).After.Run; run == nil || run.State != tc.want {
				t.Errorf("the run is %+v, want it %s", run, tc.want)
			}
		})
	}
}
