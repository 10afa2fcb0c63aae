// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// screenWidth is how many columns a line of the screen has at most.
const screenWidth = 120

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
		lines = append(lines, drawLabeled("waits", progress.DescribeWait(s.Wait))...)
	}
	if s.Next != "" {
		lines = append(lines, drawLabeled("then", s.Next)...)
	}
	if s.Run != nil && s.Run.QueuedTime != nil {
		lines = append(lines, drawLabeled("queued", progress.DescribeQueued(s.Run))...)
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
		parts = append(parts, progress.DescribeNoRollout(s))
	case run == nil:
		parts = append(parts, progress.NoRun)
	default:
		parts = append(parts, fmt.Sprintf("run %d, %s", run.Number, run.State), run.From+" → "+run.To, "for "+progress.FormatClock(run.Age.Duration))
		if run.Strategy != "" {
			parts = append(parts, "by strategy "+run.Strategy)
		}
	}
	lines := fill(parts, " · ", "  ")
	if s.Run != nil && s.Run.EndTime != nil {
		lines = append(lines, drawLabeled("ended", wording.FormatTimestamp(*s.Run.EndTime)+": "+s.Run.Message)...)
	}
	return lines
}

func drawStages(stages []progress.Stage) []string {
	parts := make([]string, 0, len(stages))
	for i := range stages {
		parts = append(parts, drawStage(&stages[i]))
	}
	return fill(parts, "     ", "")
}

func drawStage(stage *progress.Stage) string {
	text := fmt.Sprintf("%s %s %%", progress.MarkStage(stage.State), stage.Percentage)
	if notes := progress.DescribeStage(stage); notes != "" {
		text += "  " + notes
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
	shown := *v
	shown.Name = v1alpha1.VariationName(wording.Shorten(string(v.Name), maxVariation))
	return progress.VariationRow(&shown)
}

// maxVariation is how many characters of the name of a variation the table shows.
const maxVariation = 16

func drawProxies(p *progress.Proxies) []string {
	label := "proxies"
	if p.Noun != label {
		label = "routers"
	}
	lines := drawLabeled(label, progress.DescribeProxies(p))
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
		part = wording.Shorten(invocation.Printable(part), screenWidth-max(used, utf8.RuneCountInString(indent)))
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
		first := wording.Shorten(row[0], widths[0])
		cells := []string{first + strings.Repeat(" ", widths[0]-utf8.RuneCountInString(first))}
		for i, cell := range row[1:] {
			cells = append(cells, strings.Repeat(" ", widths[i+1]-utf8.RuneCountInString(cell))+cell)
		}
		lines = append(lines, strings.Join(cells, gap))
	}
	return lines
}
