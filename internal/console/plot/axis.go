// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"math"
	"time"
)

const (
	maxTicks = 6
	// minDecade is the least power of ten of a logarithmic axis, and least and most are the ends of another one.
	minDecade = -6
	least     = 1e-9
	most      = 1e300
)

// frameOf finds the ends of the axes. Those of the values take each value in, the threshold, and the last bounds of
// each line: earlier bounds may be many times wider, and are cut at the end of the axis.
func frameOf(in *Input) frame {
	f := frame{from: in.From, to: in.To, isLog: in.IsLog}
	low, high := math.Inf(1), math.Inf(-1)
	take := func(v float64) {
		if isKnown(v) && (v > 0 || !in.IsLog) {
			low, high = min(low, v), max(high, v)
		}
	}
	for i := range in.Lines {
		var last Point
		for _, p := range in.Lines[i].Points {
			if f.holds(p.Time) && isKnown(p.Value) {
				take(p.Value)
				last = p
			}
		}
		take(last.Low)
		take(last.High)
	}
	if in.Threshold > 0 {
		take(in.Threshold)
	}
	if f.isLog {
		f.low, f.high = decades(low, high)
	} else {
		f.high = highest(high)
	}
	return f
}

// decades returns powers of ten around values, at least two apart. Without a value these are 0.1 and 10.
func decades(low, high float64) (from, to float64) {
	if high < low {
		low, high = 1, 1
	}
	first := max(math.Floor(math.Log10(low)), minDecade)
	last := max(math.Ceil(math.Log10(high)), first)
	if last-first < 2 {
		first, last = first-1, last+1
	}
	return math.Pow(10, first), math.Pow(10, min(last, 308))
}

// highest returns the least multiple of a tick that is above a value.
func highest(high float64) float64 {
	if !isKnown(high) || high <= 0 {
		return 1
	}
	high = min(max(high, least), most)
	step := tickOf(high)
	return step * math.Ceil(high/step)
}

// tickOf returns the distance of the ticks of an axis from 0 to a value: 1, 2 or 5 times a power of ten.
func tickOf(high float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.2, 0.5} {
		if high/(step*part) <= maxTicks-1 {
			return step * part
		}
	}
	if high/step <= maxTicks-1 {
		return step
	}
	return 2 * step
}

func (f *frame) valueTicks(format func(float64) string) []Tick {
	var ticks []Tick
	if !f.isLog {
		step := tickOf(f.high)
		for n := range maxTicks {
			if v := step * float64(n); v <= f.high*(1+1e-9) {
				ticks = append(ticks, Tick{number(f.y(v)), format(v)})
			}
		}
		return ticks
	}
	first, last := math.Round(math.Log10(f.low)), math.Round(math.Log10(f.high))
	step := math.Ceil((last - first) / (maxTicks - 1))
	for decade := first; decade <= last; decade += step {
		ticks = append(ticks, Tick{number(f.y(math.Pow(10, decade))), format(math.Pow(10, decade))})
	}
	return ticks
}

// timeSteps are the distances of ticks on the axis of time.
var timeSteps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
}

// timeTicks are at whole steps, in UTC.
func (f *frame) timeTicks() []Tick {
	whole := f.to.Sub(f.from)
	step, format := timeSteps[len(timeSteps)-1], "15:04"
	for _, s := range timeSteps {
		if whole/s < maxTicks {
			step = s
			break
		}
	}
	if step < time.Minute {
		format = "15:04:05"
	}
	var ticks []Tick
	for at := f.from.UTC().Truncate(step); !at.After(f.to) && len(ticks) <= maxTicks; at = at.Add(step) {
		if f.holds(at) {
			ticks = append(ticks, Tick{number(f.x(at)), at.Format(format)})
		}
	}
	return ticks
}
