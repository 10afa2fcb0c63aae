// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// Interval of a rate or a ratio.
type Interval struct {
	Lower float64 `json:"lower"`
	// Upper is missing while no upper bound is known.
	Upper float64 `json:"upper,omitempty"`
}

// halvings of an interval that is searched: to 2^-50 of its width.
const halvings = 50

// The mixture over rates is a Beta distribution with these parameters.
const priorX, priorRest = 0.5, 10

// rateBounds returns bounds of a rate after n requests of which x count. They hold at all times at
// once with a probability of 1 - alpha, if each request counts with that rate and independently
// (Ville's inequality). The bet is the mixture of Robbins (1970), by Beta(1/2, 10): most of it is on
// low rates, as those of errors are. The logarithm of its payment is divided by phi.
func rateBounds(n, x uint64, phi, alpha float64) Interval {
	if n == 0 {
		return Interval{0, 1}
	}
	x = min(x, n)
	total, counted := float64(n), float64(x)
	mixed := logBeta(counted+priorX, total-counted+priorRest) - logBeta(priorX, priorRest)
	limit := phi * math.Log(1/alpha)
	refuted := func(p float64) bool { return mixed-logLikelihood(p, total, counted) >= limit }
	at := counted / total
	found := Interval{0, 1}
	if x > 0 {
		found.Lower = search(at, 0, refuted)
	}
	if x < n {
		found.Upper = search(at, 1, refuted)
	}
	return found
}

// search returns the refuted value that is nearest to a value that is not.
func search(holds, refuted float64, is func(float64) bool) float64 {
	for range halvings {
		middle := holds + (refuted-holds)/2
		if is(middle) {
			refuted = middle
		} else {
			holds = middle
		}
	}
	return refuted
}

func logLikelihood(p, n, x float64) float64 {
	l := 0.0
	if x > 0 {
		l += x * math.Log(p)
	}
	if n > x {
		l += (n - x) * math.Log1p(-p)
	}
	return l
}

func logBeta(a, b float64) float64 {
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	return la + lb - lab
}

// ratioBounds returns bounds of the ratio of two rates from the log ratios of the grid. The bet is
// the mean over the grid, so it does not depend on the ratio that is refuted; each ratio that the
// bet does not refute is within the bounds. Between two points the log likelihood, which is concave
// in the logarithm of the ratio, is at most the continuation of the neighboring chords.
func ratioBounds(g *grid, logs *[lows + bets]int64, phi, alpha float64) Interval {
	var at, l [lows + bets + 1]float64
	for i := range lows {
		at[i], l[i] = g.log[i], float64(logs[i])/micro
	}
	for i := range bets {
		at[lows+1+i], l[lows+1+i] = g.log[lows+i], float64(logs[lows+i])/micro
	}
	limit := logSum(logMean(logs[:])+math.Log(lows+bets), 0) - math.Log(lows+bets+1) - phi*math.Log(1/alpha)
	var found Interval
	if upper, bounded := crossing(at[:], l[:], limit); bounded {
		found.Upper = g.r0 * math.Exp(upper)
	}
	var mirroredAt, mirrored [lows + bets + 1]float64
	for i := range at {
		mirroredAt[i], mirrored[i] = -at[len(at)-1-i], l[len(l)-1-i]
	}
	if lower, bounded := crossing(mirroredAt[:], mirrored[:], limit); bounded {
		found.Lower = g.r0 * math.Exp(-lower)
	}
	return found
}

// estimateRatio returns the ratio with the highest likelihood, within its bounds. Between the points of the
// grid it is the vertex of the parabola through the highest point and both neighbors, on the scale of
// logarithms. It is 0 if no point is higher than both neighbors, as without failures of one arm.
func estimateRatio(g *grid, logs *[lows + bets]int64, bounds Interval) float64 {
	best := 0
	for i := range logs {
		if logs[i] > logs[best] {
			best = i
		}
	}
	if best == 0 || best == lows+bets-1 {
		return 0
	}
	x0, x1, x2 := g.log[best-1], g.log[best], g.log[best+1]
	y0, y1, y2 := float64(logs[best-1]), float64(logs[best]), float64(logs[best+1])
	at := x1
	if bend := (x1-x0)*(y1-y2) - (x1-x2)*(y1-y0); bend != 0 {
		at -= ((x1-x0)*(x1-x0)*(y1-y2) - (x1-x2)*(x1-x2)*(y1-y0)) / (2 * bend)
	}
	found := max(g.r0*math.Exp(at), bounds.Lower)
	if bounds.Upper > 0 {
		found = min(found, bounds.Upper)
	}
	return found
}

// crossing returns where a concave function falls to a limit for the last time, or a bit after
// that; false if the function is above the limit at its last point.
func crossing(at, l []float64, limit float64) (float64, bool) {
	last := len(l) - 1
	i := last
	for i > 0 && l[i] <= limit {
		i--
	}
	if i == last {
		return 0, false
	}
	found := at[i+1]
	if i > 0 {
		if slope := (l[i] - l[i-1]) / (at[i] - at[i-1]); slope < 0 {
			found = min(found, at[i]+(limit-l[i])/slope)
		}
	}
	if i+2 <= last {
		if slope := (l[i+2] - l[i+1]) / (at[i+2] - at[i+1]); slope < 0 {
			found = min(found, at[i+1]+(limit-l[i+1])/slope)
		}
	}
	return max(found, at[i]), true
}
