// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// box is a part of the flow, at a place of the grid.
type box struct {
	name        string
	column, row int
	// class is "server" for a process of Plumbline, "kind" for an object in the API server, and
	// "other" for a part that Plumbline does not bring.
	class string
	lines []string
}

// arrow leads from a box to another one. It leaves and enters at the middle of sides, unless
// it has a lane: then it runs left of the column of its end.
type arrow struct {
	from, to string
	label    string
	lane     bool
}

// diagram is a picture of boxes and arrows.
type diagram struct {
	title, description string
	boxes              []box
	arrows             []arrow
}

// flow is the flow of data through Plumbline.
var flow = diagram{
	title: "How Plumbline works",
	description: "Users, CI, GitOps and autoscalers write to the API server, which stores the name of the writer with the object. " +
		"The webhook stamps a hash and records the write in Redis. The assessor watches every version, compares it with the Baseline, and names the writer of a drift. " +
		"A RemediationPolicy makes plans from drift, and the executor writes each step once, with a signed record. " +
		"The discovery server gives proxies the split of an ABRelease, and counts their acknowledgments.",
	boxes: []box{
		{"writers", 0, 0, "other", []string{"Writers", "kubectl, CI, GitOps,", "autoscalers"}},
		{"apiserver", 1, 0, "other", []string{"kube-apiserver", "stores the writer", "with the object"}},
		{"webhook", 2, 0, "server", []string{"Webhook", "stamps a hash, warns,", "records the write"}},
		{"redis", 3, 0, "other", []string{"Redis", "records of writes,", "may be lost"}},
		{"people", 0, 1, "other", []string{"You", "blame, diff,", "accept"}},
		{"assessor", 1, 1, "server", []string{"Assessor", "compares the canonical", "hash, names the writer"}},
		{"baseline", 2, 1, "kind", []string{"Baseline", "authorized state,", "findings, severity"}},
		{"signals", 3, 1, "other", []string{"Events, metrics", "alerts,", "notifications"}},
		{"records", 0, 2, "kind", []string{"Evidence", "signed records", "of each step"}},
		{"executor", 1, 2, "server", []string{"Executor", "one fenced write", "per step"}},
		{"plan", 2, 2, "kind", []string{"RemediationPlan", "immutable, in the", "limits of a policy"}},
		{"release", 0, 3, "kind", []string{"ABRelease", "versions and", "their shares"}},
		{"xds", 1, 3, "server", []string{"Discovery server", "decides, and counts", "acknowledgments"}},
		{"envoy", 2, 3, "other", []string{"Envoy proxies", "sidecars and", "gateways"}},
		{"versions", 3, 3, "other", []string{"Versions", "90 % stable,", "10 % canary"}},
	},
	arrows: []arrow{
		{from: "writers", to: "apiserver", label: "write"},
		{from: "apiserver", to: "webhook", label: "review"},
		{from: "webhook", to: "redis", label: "record"},
		{from: "apiserver", to: "assessor", label: "watch"},
		{from: "people", to: "assessor", label: "accept"},
		{from: "assessor", to: "baseline", label: "status"},
		{from: "baseline", to: "signals", label: "tell"},
		{from: "baseline", to: "plan", label: "policy"},
		{from: "plan", to: "executor", label: "grant"},
		{from: "executor", to: "records", label: "sign"},
		{from: "executor", to: "apiserver", label: "repair", lane: true},
		{from: "release", to: "xds", label: "split"},
		{from: "xds", to: "envoy", label: "routes"},
		{from: "envoy", to: "versions", label: "requests"},
	},
}

const (
	boxWidth, boxHeight = 176, 72
	gapWidth, gapHeight = 72, 36
	border              = 16
)

// drawFlow draws a diagram.
func drawFlow(d diagram) string {
	right, bottom, places := 0, 0, map[string]box{}
	for _, b := range d.boxes {
		x, y := placeOf(b)
		right, bottom, places[b.name] = max(right, x+boxWidth), max(bottom, y+boxHeight), b
	}
	var out strings.Builder
	out.WriteString(openPicture(right+border, bottom+border, d.title, d.description, flowStyle))
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" class="paper"/>`+"\n", right+border, bottom+border)
	out.WriteString(`<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" class="head"/></marker>` + "\n")
	for _, a := range d.arrows {
		drawArrow(&out, places[a.from], places[a.to], a)
	}
	for _, b := range d.boxes {
		drawBox(&out, b)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

const flowStyle = `text{font:13px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--dim)}
.paper{fill:var(--paper)}.head{fill:var(--dim)}
.name{font-weight:600;fill:var(--ink)}.label{font-size:12px}
rect.server{fill:var(--box);stroke:var(--blue);stroke-width:2}
rect.kind{fill:var(--box);stroke:var(--green);stroke-width:2;stroke-dasharray:6 3}
rect.other{fill:var(--paper);stroke:var(--edge);stroke-width:2}
.arrow{fill:none;stroke:var(--dim);stroke-width:1.5;marker-end:url(#head)}
`

// placeOf returns the upper left corner of a box.
func placeOf(b box) (x, y int) {
	return border + b.column*(boxWidth+gapWidth), border + b.row*(boxHeight+gapHeight)
}

func drawBox(out *strings.Builder, b box) {
	x, y := placeOf(b)
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%d" height="%d" rx="8" class="%s"/>`+"\n", x, y, boxWidth, boxHeight, b.class)
	for i, text := range b.lines {
		class := ""
		if i == 0 {
			class = ` class="name"`
		}
		fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="middle"%s>%s</text>`+"\n", x+boxWidth/2, y+23+18*i, class, escapeText(text))
	}
}

// drawArrow draws an arrow to the neighbor in the row or in the column, or along a lane.
func drawArrow(out *strings.Builder, from, to box, a arrow) {
	x, y := placeOf(from)
	endX, endY := placeOf(to)
	var path string
	var labelX, labelY int
	anchor := "middle"
	switch {
	case a.lane:
		lane := endX - gapWidth/6
		path = fmt.Sprintf("M%d %dH%dV%dH%d", x, y+boxHeight/4, lane, endY+3*boxHeight/4, endX-2)
		labelX, labelY, anchor = lane-5, endY+boxHeight+gapHeight/2+4, "end"
	case from.row == to.row && from.column < to.column:
		path = fmt.Sprintf("M%d %dH%d", x+boxWidth, y+boxHeight/2, endX-2)
		labelX, labelY = x+boxWidth+gapWidth/2, y+boxHeight/2-7
	case from.row == to.row:
		path = fmt.Sprintf("M%d %dH%d", x, y+boxHeight/2, endX+boxWidth+2)
		labelX, labelY = x-gapWidth/2, y+boxHeight/2-7
	default:
		path = fmt.Sprintf("M%d %dV%d", x+boxWidth/2, y+boxHeight, endY-2)
		labelX, labelY, anchor = x+boxWidth/2+8, y+boxHeight+gapHeight/2+4, "start"
	}
	fmt.Fprintf(out, `<path d="%s" class="arrow"/>`+"\n", path)
	fmt.Fprintf(out, `<text x="%d" y="%d" text-anchor="%s" class="label">%s</text>`+"\n", labelX, labelY, anchor, escapeText(a.label))
}
