// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

const (
	// bets are the ratios above r0 on which the e-process bets.
	bets = 16
	// lows are the ratios from 1/30 to r0 that the bounds of the ratio need besides.
	lows = 16
	// micro is the unit of a log ratio: a millionth of a nat.
	micro = 1e6
)

// grid of ratios, as a function of r0. The first are those below r0, the others those above.
type grid struct {
	r0 float64
	// ratio at a point, and the logarithm of that by r0.
	ratio, log [lows + bets]float64
}

// gridOf returns the log midpoints of 16 equal parts of (1/30, r0], and of 16 equal parts of
// (r0, 30]: equal on the scale of logarithms.
func gridOf(r0 float64) (g grid) {
	g.r0 = r0
	below, above := math.Log(r0*MaxRatio), math.Log(MaxRatio/r0)
	for i := range lows {
		g.log[i] = -below * (1 - (float64(i)+0.5)/lows)
	}
	for i := range bets {
		g.log[lows+i] = above * (float64(i) + 0.5) / bets
	}
	for i := range g.ratio {
		g.ratio[i] = r0 * math.Exp(g.log[i])
	}
	return g
}

// tally has the requests of one arm in a stratum, of which x count against it.
type tally struct{ n, x float64 }

// logRatio returns in micro-nats, rounded down, by how much more probable a ratio of the grid makes
// the arms of a stratum's failures than r0 does. Given x failures, the canary's are
// Binomial(x, r n_c / (r n_c + n_s)).
func (g *grid) logRatio(at int, canary, control tally) int64 {
	if control.n == 0 {
		return 0
	}
	r, x := g.ratio[at], canary.x+control.x
	nats := canary.x*g.log[at] - x*math.Log1p((r-g.r0)*canary.n/(g.r0*canary.n+control.n))
	return int64(math.Floor(nats * micro))
}

// add adds two log ratios, and stays within the range of numbers.
func add(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// logMean returns the logarithm of the mean of exp(l), l in micro-nats, in nats.
func logMean(logs []int64) float64 {
	highest := logs[0]
	for _, l := range logs {
		highest = max(highest, l)
	}
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp((float64(l) - float64(highest)) / micro)
	}
	return float64(highest)/micro + math.Log(sum/float64(len(logs)))
}

// logSum returns log(exp(a) + exp(b)).
func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
