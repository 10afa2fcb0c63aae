// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/console/plot"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
)

// Chart draws values over time, with a table behind it.
type Chart struct {
	// ID is the fragment of the chart, and Caption says what it shows.
	ID, Caption string
	Plot        plot.Plot
	// Threshold names the line across the chart; empty without one.
	Threshold string
	Table     *Table
}

// lastHourID is the fragment of the section with the charts.
const lastHourID = "last-hour"

// The time between two looks from which on no line joins them, and the age of a look that is told.
const (
	lookGap = 35 * time.Second
	oldLook = time.Minute
)

// lastHourOf draws the last hour of a release that the leader of the discovery server has kept.
func lastHourOf(in *Release) Section {
	s := Section{ID: lastHourID, Title: "Last hour"}
	switch {
	case in.HourUnread != "":
		s.Lines = []string{"No chart is drawn: " + in.HourUnread}
		return s
	case len(in.Hour.Looks)+len(in.Hour.Cells) == 0:
		s.Lines = []string{keptSince(in.Hour), "The discovery server has counted no request of a run since, so no chart is drawn."}
		return s
	}
	s.Lines = []string{keptSince(in.Hour)}
	if looks := in.Hour.Looks; len(looks) > 0 {
		last := metav1.NewTime(looks[len(looks)-1].Time)
		if in.Now.Sub(last.Time) > oldLook {
			s.Lines = append(s.Lines, "The last look of the judge was "+wording.FormatAgo(last, in.Now)+".")
		}
		s.Charts = []Chart{ratesChart(in.Hour), betsChart(in.Hour), latencyChart(in.Hour)}
	}
	if len(in.Hour.Cells) > 0 {
		s.Charts = append(s.Charts, requestsChart(in.Hour))
	}
	return s
}

func keptSince(hour *history.Series) string {
	return fmt.Sprintf("The leader of the discovery server has kept these values since %s. A new leader starts without history. The axes of time are in UTC.", wording.FormatTimestamp(metav1.NewTime(hour.Since)))
}

// blank is a chart of the time that the series has, without lines.
func blank(hour *history.Series, format func(float64) string) *plot.Input {
	in := &plot.Input{Gap: lookGap, Format: format}
	take := func(t time.Time) {
		if in.From.IsZero() || t.Before(in.From) {
			in.From = t
		}
		if t.After(in.To) {
			in.To = t
		}
	}
	for i := range hour.Looks {
		l := &hour.Looks[i]
		take(l.Time)
		if beginsStage(hour.Looks, i) && i > 0 {
			in.Steps = append(in.Steps, plot.Step{Time: l.Time, Name: fmt.Sprintf("stage %d", l.Stage)})
		}
	}
	for i := range hour.Cells {
		take(hour.Cells[i].Start)
	}
	return in
}

// beginsStage says that a look is the first one of its stage: its counts begin anew.
func beginsStage(looks []history.Look, i int) bool {
	return i == 0 || looks[i].Run != looks[i-1].Run || looks[i].Stage != looks[i-1].Stage
}

// lookLine has a value of each look. The value returns the bounds, or no numbers.
func lookLine(hour *history.Series, name string, value func(*history.Look) (v, low, high float64)) plot.Line {
	line := plot.Line{Name: name}
	for i := range hour.Looks {
		p := plot.Point{Time: hour.Looks[i].Time, Begins: beginsStage(hour.Looks, i)}
		p.Value, p.Low, p.High = value(&hour.Looks[i])
		line.Points = append(line.Points, p)
	}
	return line
}

// lastLook names the canary and its control.
func lastLook(hour *history.Series) *history.Look { return &hour.Looks[len(hour.Looks)-1] }

// armOf returns the arm of a variation, which was the canary of one run and may be the control of the next; an arm
// without numbers where a look was about others.
func armOf(l *history.Look, variation string) *history.Arm {
	switch variation {
	case l.Canary.Variation:
		return &l.Canary
	case l.Control.Variation:
		return &l.Control
	}
	none := math.NaN()
	return &history.Arm{ErrorRate: none, Low: none, High: none, LatencyP50: none, LatencyP99: none}
}

// unbounded is a value without bounds.
func unbounded(v float64) (value, low, high float64) { return v, math.NaN(), math.NaN() }

// known is a latency; 0 stands for one that is not known.
func known(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func ratesChart(hour *history.Series) Chart {
	in, last := blank(hour, formatPercent), lastLook(hour)
	rate := func(a *history.Arm) (float64, float64, float64) { return 100 * a.ErrorRate, 100 * a.Low, 100 * a.High }
	names := []string{last.Canary.Variation, last.Control.Variation}
	for _, name := range names {
		in.Lines = append(in.Lines, lookLine(hour, name, func(l *history.Look) (float64, float64, float64) { return rate(armOf(l, name)) }))
	}
	cell := func(a *history.Arm) []string {
		v, low, high := rate(a)
		return []string{formatPercent(v), formatPercent(low) + " to " + formatPercent(high), fmt.Sprint(a.Samples)}
	}
	return Chart{
		ID: "chart-errors", Caption: "Error rate of each variation in its stage, with bounds of 95 %; wider ones are cut at the end of the axis", Plot: plot.Draw(in),
		Table: lookTable(hour, "Error rates", []string{names[0], "95 % bounds", "Requests", names[1], "95 % bounds", "Requests"},
			func(l *history.Look) []string { return append(cell(armOf(l, names[0])), cell(armOf(l, names[1]))...) }),
	}
}

func betsChart(hour *history.Series) Chart {
	in, last := blank(hour, formatFigure), lastLook(hour)
	in.IsLog, in.Threshold = true, last.Errors.FailsAt
	in.Lines = []plot.Line{
		lookLine(hour, "errors", func(l *history.Look) (float64, float64, float64) { return unbounded(l.Errors.E) }),
		lookLine(hour, "latency", func(l *history.Look) (float64, float64, float64) { return unbounded(l.Latency.E) }),
	}
	return Chart{
		ID: "chart-bets", Caption: "e-values of the bets against the canary, by powers of ten", Plot: plot.Draw(in), Threshold: "the canary fails at " + formatFigure(last.Errors.FailsAt),
		Table: lookTable(hour, "e-values", []string{"Errors", "Latency", "Fails at", "Verdict"}, func(l *history.Look) []string {
			return []string{formatFigure(l.Errors.E), formatFigure(l.Latency.E), formatFigure(l.Errors.FailsAt), wording.AppendReason(string(l.Verdict), string(l.Reason))}
		}),
	}
}

func latencyChart(hour *history.Series) Chart {
	in, last := blank(hour, formatMilliseconds), lastLook(hour)
	canary, control := last.Canary.Variation, last.Control.Variation
	values := []func(*history.Look) float64{
		func(l *history.Look) float64 { return armOf(l, canary).LatencyP99 }, func(l *history.Look) float64 { return armOf(l, control).LatencyP99 },
		func(l *history.Look) float64 { return armOf(l, canary).LatencyP50 }, func(l *history.Look) float64 { return armOf(l, control).LatencyP50 },
	}
	names := []string{canary + " p99", control + " p99", canary + " p50", control + " p50"}
	for i, value := range values {
		in.Lines = append(in.Lines, lookLine(hour, names[i], func(l *history.Look) (float64, float64, float64) { return unbounded(known(value(l))) }))
	}
	return Chart{
		ID: "chart-latency", Caption: "Latency of each variation in its stage", Plot: plot.Draw(in),
		Table: lookTable(hour, "Latencies", append(names, "Slow is more than"), func(l *history.Look) []string {
			var row []string
			for _, value := range values {
				row = append(row, formatMilliseconds(known(value(l))))
			}
			return append(row, formatMilliseconds(known(l.SlowerThan)))
		}),
	}
}

// lookTable has the last look of each minute, the newest first.
func lookTable(hour *history.Series, caption string, columns []string, row func(*history.Look) []string) *Table {
	t := &Table{Caption: caption + ", the last look of each minute, the newest first", Columns: append([]string{"Time", "Stage"}, columns...)}
	var shown time.Time
	for i := range slices.Backward(hour.Looks) {
		l := &hour.Looks[i]
		if minute := l.Time.Truncate(time.Minute); !minute.Equal(shown) {
			shown = minute
			t.Rows = append(t.Rows, append([]Cell{timeCell(l.Time), text(fmt.Sprint(l.Stage))}, texts(row(l)...)...))
		}
	}
	return t
}

func timeCell(t time.Time) Cell {
	stamp := wording.FormatTimestamp(metav1.NewTime(t))
	return Cell{Text: stamp, UTC: stamp}
}

func requestsChart(hour *history.Series) Chart {
	in := blank(hour, formatFigure)
	perMinute := map[time.Time]map[string][2]uint64{}
	lines := map[string]*plot.Line{}
	var names []string
	for i := range hour.Cells {
		c := &hour.Cells[i]
		if lines[c.Variation] == nil {
			lines[c.Variation] = &plot.Line{Name: c.Variation}
			names = append(names, c.Variation)
		}
		v, low, high := unbounded(float64(c.Requests) / history.Step.Seconds())
		lines[c.Variation].Points = append(lines[c.Variation].Points, plot.Point{Time: c.Start, Value: v, Low: low, High: high})
		minute := c.Start.Truncate(time.Minute)
		if perMinute[minute] == nil {
			perMinute[minute] = map[string][2]uint64{}
		}
		sum := perMinute[minute][c.Variation]
		perMinute[minute][c.Variation] = [2]uint64{sum[0] + c.Requests, sum[1] + c.Failed}
	}
	slices.Sort(names)
	t := &Table{Caption: "Requests of each minute, the newest first", Columns: []string{"Time"}}
	for _, name := range names {
		in.Lines = append(in.Lines, *lines[name])
		t.Columns = append(t.Columns, name, "Failed")
	}
	for _, minute := range slices.SortedFunc(maps.Keys(perMinute), func(x, y time.Time) int { return y.Compare(x) }) {
		row := []Cell{timeCell(minute)}
		for _, name := range names {
			sum, counted := perMinute[minute][name]
			if !counted {
				row = append(row, texts(progress.Unknown, progress.Unknown)...)
				continue
			}
			row = append(row, texts(fmt.Sprint(sum[0]), fmt.Sprint(sum[1]))...)
		}
		t.Rows = append(t.Rows, row)
	}
	return Chart{ID: "chart-requests", Caption: "Requests of each variation in a second", Plot: plot.Draw(in), Table: t}
}

func formatPercent(v float64) string { return formatUnit(v, " %") }

func formatMilliseconds(v float64) string { return formatUnit(v, " ms") }

func formatUnit(v float64, unit string) string {
	if math.IsNaN(v) {
		return progress.Unknown
	}
	return formatFigure(v) + unit
}

// formatFigure writes three digits, and a power of ten where the number would be long.
func formatFigure(v float64) string {
	short := strconv.FormatFloat(v, 'g', 3, 64)
	rounded, err := strconv.ParseFloat(short, 64)
	if size := math.Abs(rounded); err != nil || size != 0 && size < 1e-3 || size >= 1e6 {
		return short
	}
	return cmp.Or(strconv.FormatFloat(rounded, 'f', -1, 64), short)
}
