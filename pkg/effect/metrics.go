// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// leastPoints is how many points a window needs before its median counts.
const leastPoints = 5

// noise is the relative change of a median that counts as none: windows of a quarter of an hour
// differ by as much without a cause.
const noise = 0.10

// Objective says which direction of a metric is good.
type Objective string

// The objectives.
const (
	LowerIsBetter  Objective = "LowerIsBetter"
	HigherIsBetter Objective = "HigherIsBetter"
)

// Series are the points of one metric in three windows: before the drift, from the drift to the
// write, and after the stabilization.
type Series struct {
	Name      string
	Objective Objective
	// Before, During and After are values in any order. Each value that is no number is left out.
	Before, During, After []float64
	// Brief says that the drift was put back before During could have enough points.
	Brief bool
	// Floor is the value below which the metric has no meaning, such as one error in a thousand;
	// it must be positive. Changes are measured against the larger of floor and median.
	Floor float64
	// Why says why the series was not read; empty if it was.
	Why string
}

// MetricOutcome is what one metric says.
type MetricOutcome struct {
	Name string
	// Score in basis points; nil where the metric says nothing.
	Score *int32
	// Worse says that the metric is worse than during the drift, and worse than before it.
	Worse bool
	// NoSignal says that the drift was not visible in the metric.
	NoSignal bool
	// Brief says that During is unknown, because the drift was put back too soon.
	Brief bool
	// Before, During and After are medians.
	Before, During, After float64
	Why                   string
}

// JudgeMetric scores one metric. A metric that is back at its reference scores 10,000, as does one
// in which the drift was never visible. Between the two it scores the part of the way back. It has
// no score where a window lacks points: a mean of few points is chance. Of a drift that was put back
// too soon to be seen, *after* is compared with *before* alone, and speaks against no write.
func JudgeMetric(s Series) MetricOutcome {
	out := MetricOutcome{Name: s.Name, Brief: s.Brief}
	if s.Why != "" {
		out.Why = s.Why
		return out
	}
	if !(s.Floor > 0) || math.IsInf(s.Floor, 1) || s.Objective != LowerIsBetter && s.Objective != HigherIsBetter {
		out.Why = "its template has no objective and floor that can be used"
		return out
	}
	var missing []string
	for _, window := range []struct {
		name   string
		points []float64
		median *float64
	}{{"before", s.Before, &out.Before}, {"during", s.During, &out.During}, {"after", s.After, &out.After}} {
		points := numbers(window.points)
		if s.Brief && window.median == &out.During {
			continue
		}
		if len(points) < leastPoints {
			missing = append(missing, fmt.Sprintf("%d points %s", len(points), window.name))
			continue
		}
		*window.median = median(points)
	}
	if len(missing) > 0 {
		return MetricOutcome{Name: s.Name, Why: fmt.Sprintf("%s, wants %d", strings.Join(missing, ", "), leastPoints)}
	}
	if s.Brief {
		out.During = out.Before
	}
	return s.score(out)
}

// vast bounds the medians, in units of noise, so that no difference is infinite.
const vast = 1e12

// score compares the medians. harm is how much worse one median is than another, in units of what
// counts as noise for the reference.
func (s Series) score(out MetricOutcome) MetricOutcome {
	unit := noise * max(math.Abs(out.Before), s.Floor)
	harm := func(from, to float64) float64 {
		if s.Objective == HigherIsBetter {
			from, to = to, from
		}
		return min(max(to/unit, -vast), vast) - min(max(from/unit, -vast), vast)
	}
	drift, left, since := harm(out.Before, out.During), harm(out.Before, out.After), harm(out.During, out.After)
	switch {
	case s.Brief && left <= 1:
		out.Score, out.NoSignal, out.Why = new(int32(Best)), true, "the drift was remediated too soon to be visible in it"
	case s.Brief:
		out.Score, out.Why = new(int32(0)), "worse than before the drift, which was remediated too soon to be visible in it"
	case left <= 1 && math.Abs(drift) <= 1:
		out.Score, out.NoSignal, out.Why = new(int32(Best)), true, "the drift was not visible in it"
	case left <= 1:
		out.Score, out.Why = new(int32(Best)), "back"
	case since > 1:
		out.Score, out.Worse, out.Why = new(int32(0)), true, "worse than during the drift"
	case drift <= 1:
		out.Score, out.Why = new(int32(0)), "worse than before the drift"
	default:
		part := min(max((drift-left)/drift, 0), 1)
		out.Score, out.Why = new(int32(math.Round(part*Best))), "partly back"
	}
	return out
}

// JudgeMetrics is the mean of the metrics that say something. One metric that is worse is not
// made good by others.
func JudgeMetrics(all []MetricOutcome) Component {
	var sum, n int64
	var worse, silent []string
	for _, m := range all {
		switch {
		case m.Score == nil:
			silent = append(silent, m.Name+": "+m.Why)
			continue
		case m.Worse:
			worse = append(worse, m.Name)
		}
		n++
		sum += int64(*m.Score)
	}
	slices.Sort(silent)
	slices.Sort(worse)
	switch {
	case n == 0:
		return Component{NotAnswered, nil, false, "no metric says anything: " + strings.Join(silent, "; ")}
	case len(worse) > 0:
		return Component{Assessed, new(int32(0)), true, "worse than during the drift: " + strings.Join(worse, ", ")}
	}
	why := "each metric is assessed"
	if len(silent) > 0 {
		why = "not assessed: " + strings.Join(silent, "; ")
	}
	return Component{Assessed, new(int32((2*sum + n) / (2 * n))), false, why} //nolint:gosec // at most Best
}

// numbers leaves out what is no number, such as the ratio of no errors and no requests.
func numbers(points []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(points), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// median of at least one number. Of an even count it is the lower one of the two in the middle, so
// that no sum of two large numbers overflows.
func median(points []float64) float64 {
	slices.Sort(points)
	return points[(len(points)-1)/2]
}
