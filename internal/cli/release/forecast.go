// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// describeForecast tells how soon each stage finds a regression, and how long a healthy canary takes.
func describeForecast(d *invocation.Description, f *progress.Forecast) {
	load := &f.Load
	d.Line(1, "forecast  %s requests a minute, %s %% errors (%s)", formatPerMinute(load.RequestsPerMinute), formatPercent(100*load.ErrorRate), load.Source)
	rows := make([][]string, 0, len(f.Stages))
	for i := range f.Stages {
		rows = append(rows, forecastRow(&f.Stages[i]))
	}
	for _, line := range alignLeft(rows) {
		d.Line(2, "%s", line)
	}
	if f.Healthy > 0 {
		d.Line(1, "a canary as good as the active variation takes about %s, without waits for people, pods and gates", progress.FormatClock(f.Healthy))
		return
	}
	d.Line(1, "a canary as good as the active variation does not pass by itself: give a stage more requests, or a lower healthThreshold")
}

func forecastRow(s *rollout.StageForecast) []string {
	row := []string{strconv.FormatFloat(float64(s.Weight)/100, 'f', -1, 64) + " %", formatPerMinute(s.RequestsPerMinute) + "/min"}
	if !s.IsJudged {
		return append(row, "no verdict is needed")
	}
	healthy := "a healthy canary does not pass within " + progress.FormatClock(horizon)
	if s.Healthy > 0 {
		healthy = "a healthy canary passes in " + progress.FormatClock(s.Healthy)
	}
	return append(row, "10× errors: "+describeFound(s.Tenfold, s.Healthy), "3× errors: "+describeFound(s.Threefold, s.Healthy), healthy)
}

const horizon = 24 * time.Hour

// describeFound tells when a regression is found, and whether a canary that seems healthy has passed by then.
func describeFound(found, passes time.Duration) string {
	switch {
	case found == 0:
		return "not found within " + progress.FormatClock(horizon)
	case passes > 0 && found > passes:
		return "found in " + progress.FormatClock(found) + ", after the stage"
	}
	return "found in " + progress.FormatClock(found)
}

func formatPerMinute(n float64) string {
	if n < 10 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return progress.GroupDigits(int64(math.Round(n)))
}

func formatPercent(n float64) string {
	text := strconv.FormatFloat(n, 'f', 2, 64)
	if n > 0 && text == "0.00" {
		return strconv.FormatFloat(n, 'g', 2, 64)
	}
	return text
}

// alignLeft returns the rows as lines of aligned columns.
func alignLeft(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			fmt.Fprintf(&b, "%-*s   ", widths[i], cell)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}
