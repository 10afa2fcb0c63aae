// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// sums over units, each with n requests of which x count. The units of errors are proxies in a
// cell; those of latency are cells.
type sums struct {
	units, n, x uint64
	nn, xn, xx  float64
}

func (s *sums) unit(n, x uint64) {
	s.units++
	s.n, s.x = s.n+n, s.x+x
	s.nn += float64(n) * float64(n)
	s.xn += float64(x) * float64(n)
	s.xx += float64(x) * float64(x)
}

func (s *sums) spread(of *traffic.Spread) {
	s.units += of.Proxies
	s.n, s.x = s.n+of.N, s.x+of.X
	s.nn, s.xn, s.xx = s.nn+of.NN, s.xn+of.XN, s.xx+of.XX
}

// residue returns the sum of (x - n p)^2 over the units at the arm's own rate p, corrected for the
// rate that was estimated from the same units.
func (s *sums) residue() float64 {
	if s.n == 0 || s.units < 2 {
		return 0
	}
	p := float64(s.x) / float64(s.n)
	units := float64(s.units)
	return max(0, s.xx-2*p*s.xn+p*p*s.nn) * units / (units - 1)
}

// dispersion returns by how much the failures vary more than independent ones: the sum of
// (x - n p)^2 by the sum of n p, over the units of both arms, and at least 1. It is the estimate of
// Wedderburn (1974) for quasi-likelihood, as a ratio of sums.
func dispersion(canary, control *sums) float64 {
	x := float64(canary.x) + float64(control.x)
	if x == 0 {
		return 1
	}
	return max(1, (canary.residue()+control.residue())/x)
}

// arm has the counts of one variation.
type arm struct {
	cells, over, failed      uint64
	clientErrors, failedOver uint64
	errors, latency          sums
}

// rate of failures; 0 without requests.
func rateOf(n, x uint64) float64 {
	if n == 0 {
		return 0
	}
	return float64(x) / float64(n)
}

// percentile returns the bucket in which a quantile of the counts lies; false without counts.
func percentile(counts []uint64, q float64) (bucket int, known bool) {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	want := uint64(math.Ceil(q * float64(total)))
	sum := uint64(0)
	for i, n := range counts {
		if sum += n; sum >= want {
			return i, true
		}
	}
	return len(counts) - 1, true
}
