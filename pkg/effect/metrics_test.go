// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// at returns points around a value.
func at(value float64) []float64 { return []float64{value, value * 1.01, value, value * 0.99, value} }

func TestOneMetric(t *testing.T) {
	errors := func(before, during, after []float64) Series {
		return Series{Name: "errors", Objective: LowerIsBetter, Floor: 0.1, Before: before, During: during, After: after}
	}
	brief := func(s Series) Series {
		s.Brief = true
		return s
	}
	throughput := func(before, during, after float64) Series {
		return Series{Name: "throughput", Objective: HigherIsBetter, Floor: 1, Before: at(before), During: at(during), After: at(after)}
	}
	tests := map[string]struct {
		series Series
		score  int32 // -1 for none
		worse  bool
		silent bool
		why    string
	}{
		"back":                                        {errors(at(0.31), at(4.1), at(0.30)), 10_000, false, false, "back"},
		"half of the way back":                        {errors(at(1), at(3), at(2)), 5_000, false, false, "partly back"},
		"as during the drift":                         {errors(at(0.31), at(4.1), at(4.1)), 0, false, false, "partly back"},
		"worse than during the drift":                 {errors(at(0.31), at(4.1), at(8)), 0, true, false, "worse than during"},
		"better during the drift, and back":           {errors(at(4), at(1), at(4)), 10_000, false, false, "back"},
		"better during the drift, and worse now":      {errors(at(4), at(1), at(6)), 0, true, false, "worse than during"},
		"better than ever":                            {errors(at(4), at(8), at(1)), 10_000, false, false, "back"},
		"throughput is back":                          {throughput(100, 20, 99), 10_000, false, false, "back"},
		"throughput is a quarter back":                {throughput(100, 20, 40), 2_500, false, false, "partly back"},
		"throughput is worse":                         {throughput(100, 80, 20), 0, true, false, "worse than during"},
		"defect 12: a healthy service that is steady": {errors(at(0.3), at(0.3), at(0.3)), 10_000, false, true, "not visible"},
		"defect 9: no errors of no requests":          {errors(slices.Repeat([]float64{math.NaN()}, 9), at(4.1), at(0.3)), -1, false, false, "0 points before, wants 5"},
		"points that are no number are left out":      {errors(append(at(0.31), math.NaN(), math.Inf(1)), at(4.1), at(0.3)), 10_000, false, false, "back"},
		"no errors before and after":                  {errors(at(0), at(4.1), at(0)), 10_000, false, false, "back"},
		"defect 11: a single sample":                  {errors(at(0.31), at(4.1), []float64{0.3}), -1, false, false, "1 points after, wants 5"},
		"one point that is far off changes nothing":   {errors(at(0.31), at(4.1), append(at(0.30), 900)), 10_000, false, false, "back"},
		"a little of little is noise":                 {errors(at(0.001), at(0.009), at(0.002)), 10_000, false, true, "not visible"},
		"values at the end of all numbers":            {errors(at(1), at(math.MaxFloat64/2), at(-math.MaxFloat64/2)), 10_000, false, false, "back"},
		"a drift that was put back at once, and back": {brief(errors(at(0.31), []float64{9}, at(0.30))), 10_000, false, true, "too soon to be visible"},
		"one of which no point is known":              {brief(errors(at(0.31), nil, at(0.30))), 10_000, false, true, "too soon to be visible"},
		"one after which it is worse":                 {brief(errors(at(0.31), []float64{0.31}, at(8))), 0, false, false, "worse than before the drift"},
		"one after which too little is known":         {brief(errors(at(0.31), nil, []float64{0.3})), -1, false, false, "1 points after, wants 5"},
		"a series that was not read":                  {Series{Name: "errors", Why: "500 Internal Server Error"}, -1, false, false, "500 Internal"},
		"a template without an objective":             {Series{Name: "errors", Floor: 1, Before: at(1), During: at(1), After: at(1)}, -1, false, false, "no objective"},
		"a floor of nothing":                          {Series{Name: "errors", Objective: LowerIsBetter, Before: at(1), During: at(1), After: at(1)}, -1, false, false, "no objective and floor"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := JudgeMetric(tc.series)
			score := int32(-1)
			if got.Score != nil {
				score = *got.Score
			}
			if score != tc.score || got.Worse != tc.worse || got.NoSignal != tc.silent || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %d, worse %t, no signal %t, %q", score, got.Worse, got.NoSignal, got.Why)
			}
		})
	}
}

func TestAllMetricsTogether(t *testing.T) {
	m := func(name string, score int32) MetricOutcome { return MetricOutcome{Name: name, Score: &score} }
	silent := MetricOutcome{Name: "memory", Why: "3 points after, wants 5"}
	worse := m("latency", 0)
	worse.Worse = true
	tests := map[string]struct {
		all   []MetricOutcome
		state State
		score int32
		bad   bool
		why   string
	}{
		"their mean":                  {[]MetricOutcome{m("a", 10_000), m("b", 5_001)}, Assessed, 7_501, false, "each metric"},
		"what is silent is told":      {[]MetricOutcome{m("a", 10_000), silent}, Assessed, 10_000, false, "not assessed: memory: 3 points after, wants 5"},
		"one that is worse outweighs": {[]MetricOutcome{m("a", 10_000), worse, m("c", 10_000)}, Assessed, 0, true, "worse than during the drift: latency"},
		"none says anything":          {[]MetricOutcome{silent}, NotAnswered, -1, false, "no metric says anything: memory"},
		"there are none":              {nil, NotAnswered, -1, false, "no metric says anything"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := JudgeMetrics(tc.all)
			score := int32(-1)
			if got.Score != nil {
				score = *got.Score
			}
			if got.State != tc.state || score != tc.score || got.Bad != tc.bad || !strings.Contains(got.Why, tc.why) {
				t.Errorf("got %s %d, bad %t, %q", got.State, score, got.Bad, got.Why)
			}
		})
	}
}

// Whatever a source answers, a score is a number from 0 to 10,000.
func TestAMetricNeverScoresOutsideOfItsBounds(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 10), rapid.SampledFrom([]float64{0, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1)}))
	values := rapid.SliceOfN(value, 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		s := Series{
			Objective: rapid.SampledFrom([]Objective{LowerIsBetter, HigherIsBetter, "Later"}).Draw(t, "objective"), Floor: value.Draw(t, "floor"),
			Before: values.Draw(t, "before"), During: values.Draw(t, "during"), After: values.Draw(t, "after"), Brief: rapid.Bool().Draw(t, "brief"),
		}
		got := JudgeMetric(s)
		if got.Score != nil && (*got.Score < 0 || *got.Score > Best) {
			t.Fatalf("the score is %d", *got.Score)
		}
		if got.Why == "" {
			t.Fatal("it does not say why")
		}
		if s.Brief && got.Worse {
			t.Fatal("worse than a drift of which nothing is known")
		}
		if got.Worse && *got.Score != 0 {
			t.Fatalf("worse, with a score of %d", *got.Score)
		}
	})
}
