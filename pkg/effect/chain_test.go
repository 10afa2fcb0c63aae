// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"testing"
	"time"
)

func TestChainsOfRepairsThatDoNotHelp(t *testing.T) {
	now := written
	at := func(ago time.Duration, pre, post string, verdict Verdict) Repair {
		return Repair{WrittenTime: now.Add(-ago), PreHash: pre, PostHash: post, Verdict: verdict}
	}
	back := func(ago time.Duration) Repair { return at(ago, "a", "b", Invalidated) }
	no := func(ago time.Duration) Repair { return at(ago, "a", "b", "") }
	unread := func(ago time.Duration) Repair {
		r := no(ago)
		r.Unread = true
		return r
	}
	restart := func(ago time.Duration) Repair { return at(ago, "a", "a", Ineffective) }
	tests := map[string]struct {
		history []Repair
		live    string
		cleared time.Time
		rule    ChainRule
		repairs int
	}{
		"no repair":                                   {live: "a"},
		"two that went back":                          {history: []Repair{back(2 * minute), back(minute)}, live: "a"},
		"three that went back":                        {history: []Repair{back(3 * minute), back(2 * minute), back(minute)}, live: "a", rule: ChainRegressions, repairs: 3},
		"the order of the history is no matter":       {history: []Repair{back(minute), back(3 * minute), back(2 * minute)}, live: "a", rule: ChainRegressions, repairs: 3},
		"three that went back, and now another drift": {history: []Repair{back(3 * minute), back(2 * minute), back(minute)}, live: "c"},
		"one in between is in effect":                 {history: []Repair{back(4 * minute), back(3 * minute), at(2*minute, "c", "a", Effective), back(minute)}, live: "a"},
		"defect 16: restarts are no regressions":      {history: []Repair{restart(3 * minute), restart(2 * minute), restart(minute)}, live: "a"},
		"two that begin where the last one ended":     {history: []Repair{at(20*minute, "64", "128", Ineffective), at(10*minute, "128", "256", Ineffective)}, live: "256", rule: ChainForward, repairs: 2},
		"while the last one is being measured":        {history: []Repair{at(20*minute, "64", "128", Ineffective), at(10*minute, "128", "256", "")}, live: "256", rule: ChainForward, repairs: 2},
		"the last one helped":                         {history: []Repair{at(20*minute, "64", "128", Ineffective), at(10*minute, "128", "256", Effective)}, live: "256"},
		"the first one is more than an hour old":      {history: []Repair{at(61*minute, "64", "128", Ineffective), at(10*minute, "128", "256", Ineffective)}, live: "256"},
		"the last one is not in effect any more":      {history: []Repair{at(20*minute, "64", "128", Ineffective), at(10*minute, "128", "256", Ineffective)}, live: "64"},
		"five of different drifts":                    {history: []Repair{at(200*minute, "a", "x", Effective), at(150*minute, "b", "x", Effective), at(100*minute, "c", "x", Effective), at(50*minute, "d", "x", Effective), at(minute, "e", "x", Effective)}, live: "f", rule: ChainTooMany, repairs: 5},
		"five, of which one is older than four hours": {history: []Repair{at(241*minute, "a", "x", Effective), at(150*minute, "b", "x", Effective), at(100*minute, "c", "x", Effective), at(50*minute, "d", "x", Effective), at(minute, "e", "x", Effective)}, live: "f"},
		"three that went back before a person looked": {history: []Repair{back(3 * minute), back(2 * minute), back(minute)}, live: "a", cleared: now.Add(-minute)},
		"three of which no effect is assessed":        {history: []Repair{no(3 * minute), no(2 * minute), no(minute)}, live: "a"},
		"three of which no verdict can be read":       {history: []Repair{no(3 * minute), unread(2 * minute), no(minute)}, live: "a", rule: ChainUnknown, repairs: 3},
		"three of which one verdict can be read":      {history: []Repair{unread(3 * minute), unread(2 * minute), back(minute)}, live: "a", rule: ChainRegressions, repairs: 3},
		"two of which no verdict can be read":         {history: []Repair{unread(2 * minute), unread(minute)}, live: "a"},
		"a verdict before the last three of five":     {history: []Repair{at(5*minute, "c", "a", Effective), at(4*minute, "c", "a", Effective), no(3 * minute), no(2 * minute), no(minute)}, live: "a", rule: ChainTooMany, repairs: 5},
		"an unread verdict is none that helped": {history: []Repair{
			{WrittenTime: now.Add(-20 * minute), PreHash: "64", PostHash: "128", Unread: true}, at(10*minute, "128", "256", Ineffective),
		}, live: "256", rule: ChainForward, repairs: 2},
		"a live hash that is not known": {history: []Repair{back(3 * minute), back(2 * minute), back(minute)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := FindChain(tc.history, tc.live, now, tc.cleared)
			if got.Rule != tc.rule || len(got.Repairs) != tc.repairs {
				t.Errorf("got %q of %d repairs", got.Rule, len(got.Repairs))
			}
			if end := got.Until; tc.rule != ChainNone {
				at := func(t time.Time) ChainRule { return FindChain(tc.history, tc.live, t, tc.cleared).Rule }
				if at(end.Add(-2*time.Second)) != got.Rule || at(end) == got.Rule {
					t.Errorf("the chain ends at %s by its own words", end)
				}
			}
			for i := 1; i < len(got.Repairs); i++ {
				if got.Repairs[i].WrittenTime.Before(got.Repairs[i-1].WrittenTime) {
					t.Error("the repairs are not in order")
				}
			}
		})
	}
}

func TestWhereTheTargetStandsAfterARepair(t *testing.T) {
	r := Repair{PreHash: "a", PostHash: "b"}
	for live, want := range map[string]Match{"a": Regression, "b": InEffect, "c": MovedOn, "": MatchUnknown} {
		if got := MatchOf(r, live); got != want {
			t.Errorf("%q is %s, want %s", live, got, want)
		}
	}
	if got := MatchOf(Repair{PreHash: "a", PostHash: "a"}, "a"); got != InEffect {
		t.Errorf("a restart is %s", got)
	}
}
