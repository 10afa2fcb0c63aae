// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fullHour has a look each ten seconds, and cells of so many variations. Its values differ.
func fullHour(variations int) *history.Series {
	s := &history.Series{Since: noon.Add(-time.Hour)}
	for i := range history.MaxLooks {
		at, part := noon.Add(-time.Hour+time.Duration(i)*history.Step), float64(i)/999.7
		s.Looks = append(s.Looks, history.Look{
			Time: at, Run: 1, Stage: 1, Verdict: judge.Undecided, Errors: history.Bet{E: math.Exp(part * 9), FailsAt: 200}, Latency: history.Bet{E: math.Exp(-part * 7), FailsAt: 200},
			Canary:  history.Arm{Variation: "next", Samples: 1000, ErrorRate: part / 7, Low: part / 9, High: part / 5, LatencyP50: 11 + part*13, LatencyP99: 80 + part*17},
			Control: history.Arm{Variation: "stable", Samples: 9000, ErrorRate: part / 8, Low: part / 9, High: part / 7, LatencyP50: 11 + part*11, LatencyP99: 75 + part*19},
		})
		for v := range variations {
			s.Cells = append(s.Cells, history.Cell{Start: at, Variation: fmt.Sprintf("variation-%d", v), Requests: uint64(i*i + v), Failed: uint64(i)})
		}
	}
	return s
}

// hourPage renders the page of a release that has a last hour.
func hourPage(t *testing.T, hour *history.Series, now time.Time) string {
	t.Helper()
	page := ReleaseOf(&Release{Question: &progress.Question{Release: &v1alpha1.ABRelease{}, Now: now}, Hour: hour})
	return checkFirstLoad(t, "the page of a release", &page)
}

func TestAFullHourFitsTheFirstLoad(t *testing.T) {
	body := hourPage(t, fullHour(8), noon)
	if n := strings.Count(body, "<svg"); n != 4 {
		t.Errorf("%d charts are drawn", n)
	}
	if n := strings.Count(body, "<tr>"); n < 4*60 || n > 4*61+30 {
		t.Errorf("the tables have %d rows, want one for each minute", n)
	}
}

func TestAnHourWithoutValuesHasNoChart(t *testing.T) {
	for name, tc := range map[string]struct {
		hour  *history.Series
		now   time.Time
		words []string
		svgs  int
	}{
		"nothing is kept":    {&history.Series{Since: noon}, noon, []string{"has kept these values since 2026-03-01T12:00:00Z", "has counted no request of a run since"}, 0},
		"cells, and no look": {&history.Series{Since: noon, Cells: fullHour(1).Cells[:1]}, noon, []string{"Requests of each variation in a second"}, 1},
		"one look":           {&history.Series{Since: noon, Looks: fullHour(0).Looks[:1]}, noon.Add(-time.Hour), []string{`class="marks"`}, 3},
		"an old look":        {fullHour(1), noon.Add(20 * time.Minute), []string{"The last look of the judge was 20m ago."}, 4},
		"latency that is not known": {func() *history.Series {
			s := fullHour(1)
			for i := range s.Looks {
				s.Looks[i].Canary.LatencyP99, s.Looks[i].SlowerThan = 0, 0
			}
			return s
		}(), noon, []string{"<td>–</td>"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			body := hourPage(t, tc.hour, tc.now)
			for _, words := range tc.words {
				if !strings.Contains(body, words) {
					t.Errorf("%q is not in the page", words)
				}
			}
			if n := strings.Count(body, "<svg"); n != tc.svgs || strings.Contains(body, "NaN") || strings.Contains(body, "Inf") {
				t.Errorf("%d charts in %s", n, body)
			}
		})
	}
}

// The canary of a run that was promoted is the control of the next one: a line is about one variation.
func TestALineIsAboutOneVariation(t *testing.T) {
	s := fullHour(0)
	s.Looks = s.Looks[:20]
	for i := range 10 {
		l := &s.Looks[i]
		l.Run, l.Canary, l.Control = 0, l.Control, l.Canary
		l.Canary.ErrorRate, l.Control.ErrorRate = 0.5, 0.25 // stable was the canary
	}
	table := ratesChart(s).Table
	if got := table.Rows[len(table.Rows)-1]; got[2].Text != "25 %" || got[5].Text != "50 %" || table.Columns[2] != "next" {
		t.Errorf("the first look shows %v for %v", got, table.Columns)
	}
	if steps := ratesChart(s).Plot.Steps; len(steps) != 1 || steps[0].Label != "stage 1" {
		t.Errorf("the steps are %v", steps)
	}
}

func TestAFigureIsShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.00123: "0.00123", 0.000999: "0.000999", 12345: "12300", 999_999: "1e+06", 1e300: "1e+300", 0.1 + 0.2: "0.3",
	} {
		if got := formatFigure(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
