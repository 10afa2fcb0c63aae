// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const interval = 30 * time.Second

var (
	during = gates.Point{Run: 1, Event: gates.DuringStage, Stage: 2}
	set    = gates.Set{
		Queries: []gates.Query{{Name: "errors", PromQL: "up", Minimum: "-1", Maximum: "0.5", FailureLimit: 2}},
		Webhooks: []gates.Webhook{
			{Name: "freeze", Event: gates.BeforeStart}, {Name: "smoke", Event: gates.DuringStage}, {Name: "chat", Event: gates.AfterRollback},
		},
	}
	errorsKey = gates.Key{Kind: gates.KindQuery, Name: "errors"}
	smokeKey  = gates.Key{Kind: gates.KindWebhook, Name: "smoke"}
)

func number(after time.Duration, value float64) gates.Answer {
	return gates.Answer{Question: gates.Question{Key: errorsKey, Point: during}, Time: noon.Add(after), Value: &value}
}

func nothing(after time.Duration, why string) gates.Answer {
	return gates.Answer{Question: gates.Question{Key: errorsKey, Point: during}, Time: noon.Add(after), Message: why}
}

func says(after time.Duration, result gates.Result, message string) gates.Answer {
	return gates.Answer{Question: gates.Question{Key: smokeKey, Point: during}, Time: noon.Add(after), Result: result, Message: message}
}

func at(a gates.Answer, p gates.Point) gates.Answer {
	a.Point = p
	return a
}

func TestStep(t *testing.T) {
	type seen struct {
		Result   gates.Result
		Value    string
		Failures int
		Message  string
	}
	restarted := during
	restarted.Restart = 1
	tests := map[string]struct {
		answers []gates.Answer
		want    seen
	}{
		"a number within the bounds":                            {[]gates.Answer{number(0, 0.25)}, seen{gates.Pass, "0.25", 0, "is from -1 to 0.5"}},
		"a number at a bound":                                   {[]gates.Answer{number(0, 0.5)}, seen{gates.Pass, "0.5", 0, "is from -1 to 0.5"}},
		"a number above the maximum":                            {[]gates.Answer{number(0, 0.75)}, seen{gates.Wait, "0.75", 1, "is above the maximum 0.5; 1 of 2 in a row"}},
		"a number below the minimum":                            {[]gates.Answer{number(0, -2)}, seen{gates.Wait, "-2", 1, "is below the minimum -1; 1 of 2 in a row"}},
		"failures up to the limit":                              {[]gates.Answer{number(0, 3), number(interval, 4)}, seen{gates.Fail, "4", 2, "is above the maximum 0.5; 2 of 2 in a row"}},
		"a failure that is told twice":                          {[]gates.Answer{number(0, 3), number(0, 3)}, seen{gates.Wait, "3", 1, "is above the maximum 0.5; 1 of 2 in a row"}},
		"a good number between two failures":                    {[]gates.Answer{number(0, 3), number(interval, 0), number(2*interval, 3)}, seen{gates.Wait, "3", 1, "is above the maximum 0.5; 1 of 2 in a row"}},
		"no data between two failures":                          {[]gates.Answer{number(0, 3), nothing(interval, "empty"), number(2*interval, 3)}, seen{gates.Fail, "3", 2, "is above the maximum 0.5; 2 of 2 in a row"}},
		"no data":                                               {[]gates.Answer{nothing(0, "the result has 0 samples")}, seen{gates.NoData, "", 0, "the result has 0 samples"}},
		"a value that is no number":                             {[]gates.Answer{number(0, math.NaN())}, seen{gates.NoData, "", 0, ""}},
		"a negative infinite value":                             {[]gates.Answer{number(0, math.Inf(-1))}, seen{gates.NoData, "", 0, ""}},
		"a number at the minimum":                               {[]gates.Answer{number(0, -1)}, seen{gates.Pass, "-1", 0, "is from -1 to 0.5"}},
		"an infinite value":                                     {[]gates.Answer{number(0, math.Inf(1))}, seen{gates.NoData, "", 0, ""}},
		"a failure of the measurement before":                   {[]gates.Answer{number(0, 3), at(number(interval, 3), restarted)}, seen{gates.Wait, "3", 1, "is above the maximum 0.5; 1 of 2 in a row"}},
		"a number of the same second about another measurement": {[]gates.Answer{number(0, 3), at(number(0, 0.25), restarted)}, seen{gates.Pass, "0.25", 0, "is from -1 to 0.5"}},
		"a webhook that passes":                                 {[]gates.Answer{says(0, gates.Pass, "fine")}, seen{gates.Pass, "", 0, "fine"}},
		"a webhook that fails":                                  {[]gates.Answer{says(0, gates.Fail, "broken")}, seen{gates.Fail, "", 0, "broken"}},
		"a webhook that fails and recovers":                     {[]gates.Answer{says(0, gates.Fail, "broken"), says(interval, gates.Pass, "")}, seen{gates.Pass, "", 0, ""}},
		"a webhook with an unknown result":                      {[]gates.Answer{says(0, "Maybe", "hm")}, seen{gates.Wait, "", 0, "hm"}},
		"a webhook without data":                                {[]gates.Answer{says(0, gates.NoData, "hm")}, seen{gates.Wait, "", 0, "hm"}},
		"a message of several lines":                            {[]gates.Answer{says(0, gates.Wait, "a\nb\x1b[31m")}, seen{gates.Wait, "", 0, "a b [31m"}},
		"a message that just fits":                              {[]gates.Answer{says(0, gates.Wait, strings.Repeat("a", 256))}, seen{gates.Wait, "", 0, strings.Repeat("a", 256)}},
		"a message that is too long":                            {[]gates.Answer{says(0, gates.Wait, strings.Repeat("a", 300))}, seen{gates.Wait, "", 0, strings.Repeat("a", 253) + "…"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var states []gates.State
			for _, a := range tc.answers {
				states = gates.Settle(set, states, []gates.Answer{a}, 1)
			}
			if len(states) != 1 {
				t.Fatalf("the states are %+v", states)
			}
			s := states[0]
			if diff := cmp.Diff(tc.want, seen{s.Result, s.Value, s.Failures, s.Message}); diff != "" {
				t.Errorf("the state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettleKeepsWhatBelongsToTheRun(t *testing.T) {
	other := during
	other.Run = 2
	states := gates.Settle(set, nil, []gates.Answer{number(0, 0), says(0, gates.Pass, "")}, 1)
	tests := map[string]struct {
		set     gates.Set
		answers []gates.Answer
		run     int64
		want    int
	}{
		"the same run":                               {set: set, run: 1, want: 2},
		"another run":                                {set: set, run: 2, want: 0},
		"without the webhook":                        {set: gates.Set{Queries: set.Queries}, run: 1, want: 1},
		"with an answer about another run":           {set: set, answers: []gates.Answer{at(number(interval, 9), other)}, run: 1, want: 2},
		"with an answer about a point of no query":   {set: set, answers: []gates.Answer{at(number(interval, 9), gates.Point{Run: 1, Event: gates.BeforeStart})}, run: 1, want: 2},
		"with an answer of a gate that is not there": {set: gates.Set{}, answers: []gates.Answer{number(interval, 9)}, run: 1, want: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := gates.Settle(tc.set, states, tc.answers, tc.run)
			if len(got) != tc.want {
				t.Fatalf("the states are %+v", got)
			}
			for i := range got {
				if got[i].Failures > 0 {
					t.Errorf("a foreign answer counts: %+v", got[i])
				}
			}
		})
	}
}

// The naive twin looks at the numbers since the last good one.
func TestAQueryFailsExactlyAfterSoManyFailuresInARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		set := gates.Set{Queries: []gates.Query{{Name: "errors", PromQL: "up", Maximum: "1", FailureLimit: limit}}}
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"good", "bad", "none"}), 1, 20).Draw(t, "answers")
		var states []gates.State
		for i, word := range words {
			a := nothing(time.Duration(i)*interval, "empty")
			switch word {
			case "good":
				a = number(time.Duration(i)*interval, 1)
			case "bad":
				a = number(time.Duration(i)*interval, 2)
			}
			states = gates.Settle(set, states, []gates.Answer{a}, 1)
			row := 0
			for j := i; j >= 0 && words[j] != "good"; j-- {
				if words[j] == "bad" {
					row++
				}
			}
			want := map[string]gates.Result{"good": gates.Pass, "none": gates.NoData, "bad": gates.Wait}[word]
			if word == "bad" && row >= limit {
				want = gates.Fail
			}
			if states[0].Result != want {
				t.Fatalf("after %v with limit %d: %s, want %s", words[:i+1], limit, states[0].Result, want)
			}
		}
	})
}

func TestJudge(t *testing.T) {
	pass := []gates.Answer{number(0, 0), says(0, gates.Pass, "")}
	tests := map[string]struct {
		answers []gates.Answer
		point   gates.Point
		after   time.Duration
		want    gates.Verdict
	}{
		"all gates pass":                    {pass, during, 0, gates.Verdict{Result: gates.Pass}},
		"a point without gates":             {nil, gates.Point{Run: 1, Event: gates.BeforePromotion}, 0, gates.Verdict{Result: gates.Pass}},
		"no gate was asked":                 {nil, during, 0, gates.Verdict{Result: gates.Wait, Message: "query errors was not asked about DuringStage 2 yet"}},
		"a query has no data":               {[]gates.Answer{nothing(0, "empty"), pass[1]}, during, 0, gates.Verdict{Result: gates.Wait, Message: "query errors has no data: empty"}},
		"a number is outside of the bounds": {[]gates.Answer{number(0, 3), pass[1]}, during, 0, gates.Verdict{Result: gates.Wait, Message: "query errors: 3 is above the maximum 0.5; 1 of 2 in a row"}},
		"a webhook waits":                   {[]gates.Answer{pass[0], says(0, gates.Wait, "until Monday")}, during, 0, gates.Verdict{Result: gates.Wait, Message: "webhook smoke says Wait about DuringStage 2: until Monday"}},
		"a failure comes before a wait":     {[]gates.Answer{nothing(0, "empty"), says(0, gates.Fail, "")}, during, 0, gates.Verdict{Result: gates.Fail, Message: "webhook smoke says Fail about DuringStage 2"}},
		"an answer about another stage":     {pass, gates.Point{Run: 1, Event: gates.DuringStage, Stage: 3}, 0, gates.Verdict{Result: gates.Wait, Message: "query errors was not asked about DuringStage 3 yet"}},
		"a pass that is just fresh":         {pass, during, 2 * time.Minute, gates.Verdict{Result: gates.Pass}},
		"a pass that is too old":            {pass, during, 121 * time.Second, gates.Verdict{Result: gates.Wait, Message: "query errors was not asked about DuringStage 2 since 2026-03-02T12:00:00Z"}},
		"a failure that is old":             {[]gates.Answer{says(0, gates.Fail, "")}, during, time.Hour, gates.Verdict{Result: gates.Fail, Message: "webhook smoke says Fail about DuringStage 2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			states := gates.Settle(set, nil, tc.answers, 1)
			got := gates.Judge(set, states, tc.point, noon.Add(tc.after), gates.FreshFor(interval))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// The naive twin asks each gate by itself.
func TestAPointPassesExactlyIfEachGateOfItPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var answers []gates.Answer
		all := gates.Pass
		for _, key := range []gates.Key{errorsKey, smokeKey} {
			result := rapid.SampledFrom([]gates.Result{"", gates.Pass, gates.Pass, gates.Fail, gates.Wait, gates.NoData}).Draw(t, key.String())
			if result == "" {
				all = worse(all, gates.Wait)
				continue
			}
			a := says(0, result, "m")
			if key == errorsKey {
				a = map[gates.Result]gates.Answer{gates.Pass: number(0, 0), gates.Wait: number(0, 9), gates.NoData: nothing(0, "m"), gates.Fail: number(0, 9)}[result]
				if result == gates.Fail {
					answers = append(answers, number(-interval, 9))
				}
			}
			answers = append(answers, a)
			all = worse(all, result)
		}
		if got := gates.Judge(set, gates.Settle(set, nil, answers, 1), during, noon, time.Minute); got.Result != all || (got.Message == "") != (all == gates.Pass) {
			t.Errorf("the verdict is %+v, want %s", got, all)
		}
	})
}

func worse(a, b gates.Result) gates.Result {
	switch {
	case a == gates.Fail || b == gates.Fail:
		return gates.Fail
	case a == gates.Pass && b == gates.Pass:
		return gates.Pass
	}
	return gates.Wait
}

func TestDue(t *testing.T) {
	told := gates.Point{Run: 1, Event: gates.AfterRollback}
	chat := gates.Key{Kind: gates.KindWebhook, Name: "chat"}
	answer := func(r gates.Result) []gates.State {
		return gates.Settle(set, nil, []gates.Answer{{Question: gates.Question{Key: chat, Point: told}, Time: noon, Result: r}}, 1)
	}
	tests := map[string]struct {
		states []gates.State
		point  gates.Point
		want   []string
	}{
		"a point without gates":         {point: gates.Point{Run: 1, Event: gates.BeforePromotion}},
		"a stage that is measured":      {point: during, want: []string{"query errors", "webhook smoke"}},
		"gates that have passed":        {states: gates.Settle(set, nil, []gates.Answer{number(0, 0), says(0, gates.Pass, "")}, 1), point: during, want: []string{"query errors", "webhook smoke"}},
		"a rollback that was not told":  {point: told, want: []string{"webhook chat"}},
		"a rollback that was told":      {states: answer(gates.Pass), point: told},
		"a rollback that was not heard": {states: answer(gates.Wait), point: told, want: []string{"webhook chat"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, q := range gates.Due(set, tc.states, tc.point) {
				got = append(got, q.Key.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the questions (-want +got):\n%s", diff)
			}
		})
	}
}

// A run that one late answer holds would be held at each restart of Prometheus.
func TestAPassCountsForThreeIntervalsAndTwoMinutesAtLeast(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		10 * time.Second: 2 * time.Minute, 40 * time.Second: 2 * time.Minute, time.Minute: 3 * time.Minute, time.Hour: 3 * time.Hour,
	} {
		if got := gates.FreshFor(interval); got != want {
			t.Errorf("asked every %s, a pass counts for %s, want %s", interval, got, want)
		}
	}
}
