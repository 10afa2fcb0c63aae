// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// at is a point without bounds.
func at(seconds int, value float64) Point {
	return Point{Time: after(seconds), Value: value, Low: math.NaN(), High: math.NaN()}
}

func chart(points ...Point) *Input {
	return &Input{From: noon, To: after(100), Gap: 30 * time.Second, Lines: []Line{{"next", points}}, Format: func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }}
}

func TestALineIsDrawn(t *testing.T) {
	bounded := func(p Point, low, high float64) Point {
		p.Low, p.High = low, high
		return p
	}
	begins := func(p Point) Point {
		p.Begins = true
		return p
	}
	circle := func(x, y string) string { return "M" + x + " " + y + "a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z" }
	for name, tc := range map[string]struct {
		in   *Input
		want Drawn
	}{
		"no point":                      {chart(), Drawn{}},
		"no value that is known":        {chart(at(0, math.NaN()), at(10, math.Inf(1)), at(20, math.Inf(-1))), Drawn{}},
		"points outside of the time":    {chart(at(-10, 1), at(110, 1)), Drawn{}},
		"one point":                     {chart(at(50, 1)), Drawn{Marks: circle("274.5", "12") + circle("274.5", "12"), LabelX: "510", LabelY: "12"}},
		"two points":                    {chart(at(0, 0), at(20, 1)), Drawn{Path: "M56 212L144.8 12", Marks: circle("141.3", "12"), LabelX: "510", LabelY: "12"}},
		"a gap":                         {chart(at(0, 1), at(20, 1), at(50, 1), at(70, 1)), Drawn{Path: "M56 12L144.8 12M278 12L366.8 12", Marks: circle("363.3", "12"), LabelX: "510", LabelY: "12"}},
		"a value between is not known":  {chart(at(0, 1), at(10, 1), at(20, math.NaN()), at(30, 1), at(40, 1)), Drawn{Path: "M56 12L100.4 12M189.2 12L233.6 12", Marks: circle("230.1", "12"), LabelX: "510", LabelY: "12"}},
		"a stage that begins":           {chart(at(0, 1), at(10, 1), begins(at(20, 0)), at(30, 0)), Drawn{Path: "M56 12L100.4 12M144.8 212L189.2 212", Marks: circle("185.7", "212"), LabelX: "510", LabelY: "212"}},
		"bounds":                        {chart(bounded(at(0, 1), 0, 1), bounded(at(10, 1), 0.5, 2)), Drawn{Path: "M56 112L100.4 112", Band: "M56 112L100.4 12L100.4 162L56 212Z", Marks: circle("96.9", "112"), LabelX: "510", LabelY: "112"}},
		"bounds of before are cut":      {chart(bounded(at(0, 1), 0, 900), bounded(at(10, 1), 0.5, 2)), Drawn{Path: "M56 112L100.4 112", Band: "M56 12L100.4 12L100.4 162L56 212Z", Marks: circle("96.9", "112"), LabelX: "510", LabelY: "112"}},
		"a bound that is not known":     {chart(bounded(at(0, 1), 1, 1), bounded(at(10, 1), 1, 1), at(20, 1)), Drawn{Path: "M56 12L100.4 12L144.8 12", Band: "M56 12L100.4 12L100.4 12L56 12Z", Marks: circle("141.3", "12"), LabelX: "510", LabelY: "12"}},
		"a negative value is at bottom": {chart(at(0, -5), at(10, 1)), Drawn{Path: "M56 212L100.4 12", Marks: circle("96.9", "12"), LabelX: "510", LabelY: "12"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Number, tc.want.Name = 1, "next"
			if diff := cmp.Diff(tc.want, Draw(tc.in).Lines[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func labels(ticks []Tick) string {
	var all []string
	for _, tick := range ticks {
		all = append(all, tick.Label)
	}
	return strings.Join(all, " ")
}

func TestAxesHaveAFewTicks(t *testing.T) {
	logarithmic := func(threshold float64, points ...Point) *Input {
		in := chart(points...)
		in.IsLog, in.Threshold = true, threshold
		return in
	}
	for name, tc := range map[string]struct {
		in   *Input
		want string
	}{
		"no value":                           {chart(), "0 0.2 0.4 0.6 0.8 1"},
		"zero":                               {chart(at(0, 0)), "0 0.2 0.4 0.6 0.8 1"},
		"a percentage":                       {chart(at(0, 7.3)), "0 2 4 6 8"},
		"a large value":                      {chart(at(0, 30_000)), "0 10000 20000 30000"},
		"the largest value":                  {chart(at(0, math.MaxFloat64)), "0 2e+299 4e+299 6e+299 8e+299 1e+300"},
		"the least value":                    {chart(at(0, 5e-324)), "0 5e-10 1e-09"},
		"a threshold above":                  {func() *Input { in := chart(at(0, 1)); in.Threshold = 4; return in }(), "0 1 2 3 4"},
		"no value on a logarithmic axis":     {logarithmic(0), "0.1 1 10"},
		"a threshold alone":                  {logarithmic(200), "10 100 1000 10000"},
		"a small bet":                        {logarithmic(200, at(0, 0.3), at(10, 2)), "0.1 1 10 100 1000"},
		"zero on a logarithmic axis":         {logarithmic(200, at(0, 0), at(10, -3)), "10 100 1000 10000"},
		"a bet that is nearly lost":          {logarithmic(200, at(0, 1e-30)), "1e-06 0.0001 0.01 1 100"},
		"a bet of 1e300":                     {logarithmic(200, at(0, 1e300)), "100 1e+62 1e+122 1e+182 1e+242"},
		"the largest value of a logarithm":   {logarithmic(0, at(0, math.MaxFloat64)), "1e+307 1e+308"},
		"values that are not known, on both": {logarithmic(math.NaN(), at(0, math.NaN()), at(1, math.Inf(1))), "0.1 1 10"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := labels(Draw(tc.in).Y); got != tc.want {
				t.Errorf("the ticks are %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTheAxisOfTimeHasWholeSteps(t *testing.T) {
	for whole, want := range map[time.Duration]string{
		0: "12:00:07", 50 * time.Second: "12:00:10 12:00:20 12:00:30 12:00:40 12:00:50", 5 * time.Minute: "12:01 12:02 12:03 12:04 12:05", 25 * time.Minute: "12:05 12:10 12:15 12:20 12:25",
		time.Hour: "12:15 12:30 12:45 13:00",
	} {
		in := chart()
		in.From = after(7)
		in.To = in.From.Add(whole)
		if got := labels(Draw(in).X); got != want && whole > 0 {
			t.Errorf("%v: %s, want %s", whole, got, want)
		}
	}
}

func TestTheThresholdAndTheStepsAreDrawn(t *testing.T) {
	in := chart(at(0, 1), at(10, 2))
	in.IsLog, in.Threshold = true, 200
	in.Steps = []Step{{after(-1), "before"}, {after(50), "stage 2"}}
	got := Draw(in)
	if diff := cmp.Diff(&Tick{"58.6", "200"}, got.Threshold); diff != "" {
		t.Errorf("the threshold (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Tick{{"278", "stage 2"}}, got.Steps); diff != "" {
		t.Errorf("the steps (-want +got):\n%s", diff)
	}
}

// Lines that end at one place have names beside each other, within the chart.
func TestNamesAtTheEndsDoNotOverlap(t *testing.T) {
	for _, value := range []float64{0, 0.5, 1} {
		in := chart(at(0, 1))
		in.Lines = nil
		for i := range 6 {
			in.Lines = append(in.Lines, Line{fmt.Sprint(i), []Point{at(0, 1), at(90, value)}})
		}
		lines := Draw(in).Lines
		if len(lines) != MaxLines {
			t.Fatalf("%d lines are drawn", len(lines))
		}
		seen := map[string]bool{}
		for i, line := range lines {
			y, err := strconv.ParseFloat(line.LabelY, 64)
			if err != nil || y < 12 || y > 212 || seen[line.Marks] {
				t.Errorf("value %v, line %d: the name is at %s with the marks %s", value, i, line.LabelY, line.Marks)
			}
			seen[line.Marks] = true
			for _, other := range lines[:i] {
				o, _ := strconv.ParseFloat(other.LabelY, 64)
				if math.Abs(y-o) < labelHeight {
					t.Errorf("value %v: names at %s and %s", value, line.LabelY, other.LabelY)
				}
			}
		}
	}
}

var pathOf = regexp.MustCompile(`^([MLaZ0-9. -]*)$`)

// Whatever the values are, all is a number within the chart.
func TestEverythingIsWithinTheChart(t *testing.T) {
	values := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1, 2), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, 5e-324, 1e300}))
	coordinates := regexp.MustCompile(`[ML](\S+) ([^MLaZ]+)`)
	rapid.Check(t, func(t *rapid.T) {
		in := chart()
		in.Lines = nil
		in.IsLog, in.Threshold = rapid.Bool().Draw(t, "log"), values.Draw(t, "threshold")
		in.To = noon.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "span")) * time.Second)
		for range rapid.IntRange(0, 4).Draw(t, "lines") {
			var line Line
			for i := range rapid.IntRange(0, 20).Draw(t, "points") {
				line.Points = append(line.Points, Point{after(i*10 - 10), values.Draw(t, "value"), values.Draw(t, "low"), values.Draw(t, "high"), rapid.Bool().Draw(t, "begins")})
			}
			in.Lines = append(in.Lines, line)
		}
		p := Draw(in)
		within := func(text string, least, most float64) {
			if v, err := strconv.ParseFloat(text, 64); err != nil || math.IsNaN(v) || v < least || v > most {
				t.Fatalf("%q is not from %v to %v", text, least, most)
			}
		}
		for _, line := range p.Lines {
			for _, path := range []string{line.Path, line.Band, line.Marks} {
				if !pathOf.MatchString(path) {
					t.Fatalf("the path is %s", path)
				}
				for _, c := range coordinates.FindAllStringSubmatch(path, -1) {
					within(c[1], left-5, Width-right+5)
					within(strings.TrimSpace(c[2]), top-5, Height-bottom+5)
				}
			}
		}
		if len(p.Y) == 0 || len(p.Y) > maxTicks+1 || len(p.X) > maxTicks+1 {
			t.Fatalf("%d and %d ticks", len(p.X), len(p.Y))
		}
		for _, tick := range p.Y {
			within(tick.At, top, Height-bottom)
		}
		for _, tick := range p.X {
			within(tick.At, left, Width-right)
		}
		if p.Threshold != nil {
			within(p.Threshold.At, top, Height-bottom)
		}
	})
}
