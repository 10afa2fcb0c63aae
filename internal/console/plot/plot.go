// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The frame of a chart, in pixels at its natural size.
const (
	Width  = 640
	Height = 240
	left   = 56
	right  = 140
	top    = 12
	bottom = 28
	// labelHeight keeps the names at the ends of lines apart.
	labelHeight = 16
)

// MaxLines is how many lines have a mark of their own.
const MaxLines = 4

// Input is the content of a chart.
type Input struct {
	// From and To are the ends of the axis of time.
	From, To time.Time
	// IsLog has the axis of values go by powers of ten. A value of 0 or less is drawn at its lower end.
	IsLog bool
	// Lines are drawn in this order; those beyond MaxLines are left out.
	Lines []Line
	// Threshold is a value that is drawn across the chart; 0 for none.
	Threshold float64
	// Gap is the time between two points from which on no line joins them.
	Gap time.Duration
	// Format writes a value.
	Format func(float64) string
	// Steps are times that are drawn across the chart, with their names.
	Steps []Step
}

// Line has a name and points in the order of their times.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value at a time. A value that is no finite number is not known, and so is a bound.
type Point struct {
	Time             time.Time
	Value, Low, High float64
	// Begins says that no line joins the point with the one before.
	Begins bool
}

// Step is a time at which something begins.
type Step struct {
	Time time.Time
	Name string
}

// Plot is a chart, in pixels from its upper left corner.
type Plot struct {
	Width, Height            int
	Left, Right, Top, Bottom string
	// X and Y are the ticks of the axes.
	X, Y      []Tick
	Steps     []Tick
	Lines     []Drawn
	Threshold *Tick
}

// Tick is a place on an axis with its label.
type Tick struct {
	At, Label string
}

// Drawn is a line: Path joins its points, Band is the area between its bounds, and Marks are shapes at its last
// point and at points that no line joins.
type Drawn struct {
	// Number is the place of the line, from 1 on.
	Number            int
	Name              string
	Path, Band, Marks string
	// LabelX and LabelY are where the name begins; empty for a line without a point.
	LabelX, LabelY string
}

// Draw lays a chart out. A line without a known value within the axis of time has no path.
func Draw(in *Input) Plot {
	f := frameOf(in)
	p := Plot{
		Width: Width, Height: Height, Left: number(left), Right: number(Width - right), Top: number(top), Bottom: number(Height - bottom),
		X: f.timeTicks(), Y: f.valueTicks(in.Format),
	}
	if isKnown(in.Threshold) && in.Threshold > 0 {
		p.Threshold = &Tick{number(f.y(in.Threshold)), in.Format(in.Threshold)}
	}
	for _, s := range in.Steps {
		if f.holds(s.Time) {
			p.Steps = append(p.Steps, Tick{number(f.x(s.Time)), s.Name})
		}
	}
	var ends []*end
	for i := range in.Lines[:min(len(in.Lines), MaxLines)] {
		drawn, last := f.draw(in, i)
		p.Lines = append(p.Lines, drawn)
		if last != nil {
			ends = append(ends, &end{line: i, y: f.y(last.Value)})
		}
	}
	for _, e := range spread(ends) {
		p.Lines[e.line].LabelX, p.Lines[e.line].LabelY = number(Width-right+10), number(e.y)
	}
	return p
}

// frame maps times and values to pixels.
type frame struct {
	from, to  time.Time
	low, high float64
	isLog     bool
}

func (f *frame) holds(t time.Time) bool { return !t.Before(f.from) && !t.After(f.to) }

func (f *frame) x(t time.Time) float64 {
	whole := f.to.Sub(f.from)
	if whole <= 0 {
		return Width - right
	}
	return left + (Width-right-left)*float64(t.Sub(f.from))/float64(whole)
}

// y keeps a value that is beyond the axis at its end.
func (f *frame) y(value float64) float64 {
	low, high := f.low, f.high
	if f.isLog {
		low, high, value = math.Log10(low), math.Log10(high), math.Log10(max(value, f.low))
	}
	part := (value - low) / (high - low)
	return Height - bottom - (Height-bottom-top)*min(max(part, 0), 1)
}

// run is a sequence of points that a line joins.
type run []Point

// runs cuts a line where a value is not known, where a gap is, and where a point begins anew.
func (f *frame) runs(in *Input, line *Line) []run {
	var all []run
	for _, p := range line.Points {
		if !f.holds(p.Time) {
			continue
		}
		if !isKnown(p.Value) {
			all = append(all, nil)
			continue
		}
		joins := len(all) > 0 && len(all[len(all)-1]) > 0 && !p.Begins
		if joins {
			before := all[len(all)-1]
			joins = p.Time.Sub(before[len(before)-1].Time) < in.Gap
		}
		if !joins {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return slices.DeleteFunc(all, func(r run) bool { return len(r) == 0 })
}

// draw draws a line, and returns its last point; nil without one.
func (f *frame) draw(in *Input, i int) (Drawn, *Point) {
	d := Drawn{Number: i + 1, Name: in.Lines[i].Name}
	var last *Point
	var path, band, marks strings.Builder
	for _, r := range f.runs(in, &in.Lines[i]) {
		last = &r[len(r)-1]
		if len(r) == 1 {
			mark(&marks, i, f.x(last.Time), f.y(last.Value))
			continue
		}
		for n, p := range r {
			move(&path, n == 0, f.x(p.Time), f.y(p.Value))
		}
		f.bound(&band, r)
	}
	if last != nil {
		mark(&marks, i, f.x(last.Time), f.y(last.Value))
	}
	d.Path, d.Band, d.Marks = path.String(), band.String(), marks.String()
	return d, last
}

// bound draws the area between the bounds of a run, along each part of which both are known.
func (f *frame) bound(b *strings.Builder, r run) {
	for len(r) > 0 {
		n := slices.IndexFunc(r, func(p Point) bool { return !isKnown(p.Low) || !isKnown(p.High) })
		if n < 0 {
			n = len(r)
		}
		if n > 1 {
			for i, p := range r[:n] {
				move(b, i == 0, f.x(p.Time), f.y(p.High))
			}
			for _, p := range slices.Backward(r[:n]) {
				move(b, false, f.x(p.Time), f.y(p.Low))
			}
			b.WriteByte('Z')
		}
		r = r[min(n+1, len(r)):]
	}
}

// mark draws a circle, a square, a diamond or a triangle, by the place of the line.
func mark(b *strings.Builder, line int, x, y float64) {
	const r = 3.5
	corners := [][2]float64{{-r, -r}, {r, -r}, {r, r}, {-r, r}}
	switch line {
	case 0:
		move(b, true, x-r, y)
		b.WriteString("a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z")
		return
	case 2:
		corners = [][2]float64{{0, -r - 1}, {r + 1, 0}, {0, r + 1}, {-r - 1, 0}}
	case 3:
		corners = [][2]float64{{0, -r - 1}, {r + 1, r}, {-r - 1, r}}
	}
	for n, c := range corners {
		move(b, n == 0, x+c[0], y+c[1])
	}
	b.WriteByte('Z')
}

// end is the end of a line.
type end struct {
	line int
	y    float64
}

// spread moves the names at the ends of lines apart, and keeps them within the chart.
func spread(ends []*end) []*end {
	slices.SortStableFunc(ends, func(a, b *end) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(ends); i++ {
		ends[i].y = max(ends[i].y, ends[i-1].y+labelHeight)
	}
	floor := float64(Height - bottom)
	for _, e := range slices.Backward(ends) {
		e.y = min(e.y, floor)
		floor = e.y - labelHeight
	}
	return ends
}

func move(b *strings.Builder, begins bool, x, y float64) {
	if begins {
		b.WriteByte('M')
	} else {
		b.WriteByte('L')
	}
	b.WriteString(number(x))
	b.WriteByte(' ')
	b.WriteString(number(y))
}

func isKnown(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number has tenths of a pixel.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
