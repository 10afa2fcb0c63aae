// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// screenWidth is how many columns a line of the screen has at most.
const screenWidth = 120

// unknown stands for a value that the status does not have.
const unknown = "–"

// drawScreen returns the lines of a release at a glance.
func drawScreen(s *progress.Screen) []string {
	lines := drawHeader(s)
	lines = append(lines, drawStages(s.Stages)...)
	lines = append(append(lines, drawVariations(s)...), drawGroups(s.Groups)...)
	if s.Proxies != nil {
		lines = append(lines, drawProxies(s.Proxies)...)
	}
	if s.Judge != nil {
		lines = append(lines, drawLabeled("judge", string(s.Judge.Verdict)+": "+s.Judge.Message)...)
		lines = append(lines, drawHealth(s.Judge, &s.Trail)...)
	}
	if s.Wait != nil {
		lines = append(lines, drawLabeled("waits", describeWait(s.Wait))...)
	}
	if s.Next != "" {
		lines = append(lines, drawLabeled("then", s.Next)...)
	}
	if s.Run != nil && s.Run.QueuedTime != nil {
		lines = append(lines, drawLabeled("queued", "the next run, since "+invocation.FormatTimestamp(*s.Run.QueuedTime)+": it takes up the change of the spec when this run has ended")...)
	}
	return lines
}

func drawHeader(s *progress.Screen) []string {
	parts := []string{s.Name, "Service " + s.Namespace + "/" + s.Service}
	switch {
	case s.Groups == nil:
	case s.Service == "":
		parts[1] = "groups of " + s.Namespace
	default:
		parts[1] += " and groups"
	}
	switch run := s.Run; {
	case !s.HasRollout:
		parts = append(parts, "no rollout: proxies get the percentages of the spec")
	case run == nil:
		parts = append(parts, "no run yet")
	default:
		parts = append(parts, fmt.Sprintf("run %d, %s", run.Number, run.State), run.From+" → "+run.To, "for "+formatClock(run.Age.Duration))
		if run.Strategy != "" {
			parts = append(parts, "by strategy "+run.Strategy)
		}
	}
	lines := fill(parts, " · ", "  ")
	if s.Run != nil && s.Run.EndTime != nil {
		lines = append(lines, drawLabeled("ended", invocation.FormatTimestamp(*s.Run.EndTime)+": "+s.Run.Message)...)
	}
	return lines
}

// stageMark returns the mark of a stage: one column.
func stageMark(state v1alpha1.RolloutStageState) string {
	switch state {
	case "Pending":
		return "○"
	case "Running":
		return "▶"
	case "Succeeded":
		return "✓"
	case "Failed":
		return "✗"
	case "Skipped":
		return "»"
	}
	return "?"
}

func drawStages(stages []progress.Stage) []string {
	parts := make([]string, 0, len(stages))
	for i := range stages {
		parts = append(parts, drawStage(&stages[i]))
	}
	return fill(parts, "     ", "")
}

func drawStage(stage *progress.Stage) string {
	var notes []string
	switch wanted, measured := stage.Wanted.Duration, stage.Measured.Duration; {
	case stage.State == "Pending" && wanted > 0:
		notes = append(notes, formatClock(wanted))
	case stage.State == "Running" && wanted > 0:
		notes = append(notes, formatClock(measured)+" of "+formatClock(wanted))
	case stage.State != "Pending" && measured > 0:
		notes = append(notes, formatClock(measured))
	}
	switch {
	case stage.ApprovedBy != "":
		notes = append(notes, "approved by "+stage.ApprovedBy)
	case stage.NeedsApproval && stage.State != "Failed" && stage.State != "Skipped":
		notes = append(notes, "approval")
	}
	if stage.Restarts > 0 {
		notes = append(notes, plural.Of(int(stage.Restarts), "restart"))
	}
	text := fmt.Sprintf("%s %s %%", stageMark(stage.State), stage.Percentage)
	if len(notes) > 0 {
		text += "  " + strings.Join(notes, ", ")
	}
	return text
}

// drawVariations returns a table whose columns without any value are left out.
func drawVariations(s *progress.Screen) []string {
	if len(s.Variations) == 0 {
		return nil
	}
	rows := [][]string{{"", "wanted", "acknowledged", "observed", "ready", "in-flight", "errors", "95 % bounds", "p50", "p99", "requests"}}
	for i := range s.Variations {
		rows = append(rows, variationRow(&s.Variations[i]))
	}
	return alignRight(rows)
}

func variationRow(v *progress.Variation) []string {
	name := invocation.Shorten(string(v.Name), maxVariation)
	if v.IsCanary {
		name += " (canary)"
	}
	row := []string{name, formatShare(v.Wanted, 2), formatShare(v.Acknowledged, 2), formatShare(v.Observed, 1), unknown, unknown}
	if v.Ready != nil && v.Targets != nil {
		row[4] = fmt.Sprintf("%d/%d", *v.Ready, *v.Targets)
	}
	if v.InFlight != nil {
		row[5] = progress.GroupDigits(*v.InFlight)
	}
	h := v.Health
	if h == nil {
		return append(row, unknown, unknown, unknown, unknown, unknown)
	}
	return append(row, formatRate(h.ErrorRate)+" %", "["+formatRate(h.ErrorRateLow)+", "+formatRate(h.ErrorRateHigh)+"]",
		formatLatency(h.LatencyP50Milliseconds), formatLatency(h.LatencyP99Milliseconds), progress.GroupDigits(h.Samples))
}

// maxVariation is how many characters of the name of a variation the table shows.
const maxVariation = 16

func drawProxies(p *progress.Proxies) []string {
	text := fmt.Sprintf("%d of %d %s acknowledged", p.Acknowledged, p.All, plural.Verb(int(p.Acknowledged), "has", "have"))
	switch {
	case p.All == 0:
		text = "no proxy has to acknowledge the split"
	case p.Sequence > 0:
		text += fmt.Sprintf(" sequence %d", p.Sequence)
	}
	if p.Knowledge != v1alpha1.AcknowledgedProven {
		text += fmt.Sprintf(" (%s)", p.Knowledge)
	}
	lines := drawLabeled("proxies", text)
	for i := range p.OutOfSync {
		if i == shownProxies {
			return append(lines, drawLabeled("", fmt.Sprintf("and %d more", len(p.OutOfSync)-i))...)
		}
		lines = append(lines, drawLabeled("", "out of sync: "+p.OutOfSync[i].Name+orNothing(": ", p.OutOfSync[i].Why))...)
	}
	return lines
}

// shownProxies is how many proxies that are out of sync the screen names.
const shownProxies = 3

func orNothing(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func describeWait(w *progress.Wait) string {
	text := w.Reason
	if w.Deadline != nil {
		left := formatClock(w.Left.Duration) + " more"
		if w.Left.Duration == 0 {
			left = "the deadline is over"
		}
		text += fmt.Sprintf(", %s (until %s)", left, invocation.FormatTimestamp(*w.Deadline))
	}
	return text + ": " + w.Message
}

// labelColumn is where the text behind a label begins.
const labelColumn = 9

// drawLabeled returns a label with its text, on as many lines as the text needs.
func drawLabeled(label, text string) []string {
	return drawParts(label, strings.Fields(invocation.Printable(text)), " ")
}

// drawParts returns a label with parts, on as many lines as the parts need.
func drawParts(label string, parts []string, separator string) []string {
	lines := fill(parts, separator, strings.Repeat(" ", labelColumn), labelColumn)
	if len(lines) > 0 {
		lines[0] = fmt.Sprintf("%-*s%s", labelColumn, label, strings.TrimLeft(lines[0], " "))
	}
	return lines
}

// fill joins parts to lines of at most [screenWidth] columns. A part that is wider is cut. The indent
// begins each line but the first, which leaves room for so many columns.
func fill(parts []string, separator, indent string, first ...int) []string {
	var lines []string
	line, used := "", 0
	for _, n := range first {
		used += n
	}
	for _, part := range parts {
		part = invocation.Shorten(invocation.Printable(part), screenWidth-max(used, utf8.RuneCountInString(indent)))
		width := utf8.RuneCountInString(part)
		switch {
		case line == "":
			line = part
		case used+utf8.RuneCountInString(line+separator)+width <= screenWidth:
			line += separator + part
		default:
			lines = append(lines, line)
			line, used = indent+part, 0
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// alignRight returns the rows as lines of aligned columns, the first one to the left. Where lines would be
// wider than [screenWidth], columns come closer, and the first one is cut.
func alignRight(rows [][]string) []string {
	widths, sum := make([]int, len(rows[0])), 0
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		sum += widths[i]
	}
	gap := "  "
	if sum+2*(len(widths)-1) > screenWidth {
		gap = " "
	}
	widths[0] = max(1, min(widths[0], screenWidth-(sum-widths[0])-len(gap)*(len(widths)-1)))
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		first := invocation.Shorten(row[0], widths[0])
		cells := []string{first + strings.Repeat(" ", widths[0]-utf8.RuneCountInString(first))}
		for i, cell := range row[1:] {
			cells = append(cells, strings.Repeat(" ", widths[i+1]-utf8.RuneCountInString(cell))+cell)
		}
		lines = append(lines, strings.Join(cells, gap))
	}
	return lines
}

// formatClock returns a duration in seconds up to days, with at most two units: 40s, 5m02s, 2h05m, 3d04h.
func formatClock(d time.Duration) string {
	d = d.Truncate(time.Second)
	for _, u := range []struct {
		large, small time.Duration
		names        [2]string
	}{
		{24 * time.Hour, time.Hour, [2]string{"d", "h"}}, {time.Hour, time.Minute, [2]string{"h", "m"}}, {time.Minute, time.Second, [2]string{"m", "s"}},
	} {
		if d < u.large {
			continue
		}
		text := fmt.Sprintf("%d%s", d/u.large, u.names[0])
		if rest := d % u.large / u.small; rest > 0 {
			text += fmt.Sprintf("%02d%s", rest, u.names[1])
		}
		return text
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// formatShare returns a percentage with at most so many decimals.
func formatShare(percent *float64, decimals int) string {
	if percent == nil {
		return unknown
	}
	text := strconv.FormatFloat(*percent, 'f', decimals, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + " %"
}

// formatRate returns a rate with two decimals, or with all of its digits when two would show 0.
func formatRate(r v1alpha1.Rate) string {
	n, err := strconv.ParseFloat(string(r), 64)
	if err != nil {
		return cmp.Or(string(r), unknown)
	}
	text := strconv.FormatFloat(n, 'f', 2, 64)
	if n > 0 && text == "0.00" {
		return string(r)
	}
	return text
}

func formatLatency(milliseconds int64) string {
	if milliseconds == 0 {
		return unknown
	}
	return progress.GroupDigits(milliseconds) + " ms"
}
