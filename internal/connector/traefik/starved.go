// SPDX-License-Identifier: Apache-2.0

package traefik

import (
	"fmt"
	"math"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

const (
	// starvedDeviations is the bound of what chance explains: three standard deviations.
	starvedDeviations = 3
	// starvedPart is the part of its share below which a variation counts as starved.
	starvedPart = 0.5
	// minReloads are those without which their rate is not known.
	minReloads = 10
)

// Seen is what one Traefik did while a split was in force.
type Seen struct {
	// Requests are those that the weights divided, and Reloads the configurations that the Traefik took.
	Requests, Reloads uint64
	// By are the requests of each variation.
	By map[string]uint64
}

// FindStarved returns the variations that got less than half of their share, or cannot get more. Both have a bound of
// three standard deviations.
//
// Observed: X of n requests with share p. A round robin is exact, so the variance n·p·(1-p) of the binomial
// distribution is an upper bound of chance.
//
// Possible: the round robin starts anew with each reload, and reaches a variation with share p after 1/p requests. Of N
// requests between two reloads ⌊N·p⌋ are the variation's; N has the Poisson distribution. Its mean is n/r, where r is the
// lower bound of the reloads, since reloads are counted too.
func FindStarved(shares traffic.Shares, seen Seen) []traffic.Starved {
	var starved []traffic.Starved
	n := float64(seen.Requests)
	for _, share := range shares {
		p := float64(share.Weight) / float64(traffic.Total)
		if p == 0 || p == 1 || n == 0 {
			continue
		}
		got := float64(seen.By[share.Variation])
		if got < starvedPart*n*p && got+starvedDeviations*math.Sqrt(n*p*(1-p)) < n*p {
			starved = append(starved, traffic.Starved{Variation: share.Variation, Why: fmt.Sprintf(
				"it got %.0f of %.0f requests, and its share is %s %%", got, n, share.Weight.Percent())})
			continue
		}
		between, known := requestsBetweenReloads(seen)
		if known && attainable(p, between) < starvedPart*p {
			starved = append(starved, traffic.Starved{Variation: share.Variation, Why: fmt.Sprintf(
				"the round robin starts again after each %.0f requests, and reaches a share of %s %% after %.0f", between, share.Weight.Percent(), math.Ceil(1/p))})
		}
	}
	return starved
}

// requestsBetweenReloads is an upper bound of the mean.
func requestsBetweenReloads(seen Seen) (mean float64, known bool) {
	reloads := float64(seen.Reloads)
	lower := reloads - starvedDeviations*math.Sqrt(reloads)
	if seen.Reloads < minReloads || lower <= 0 {
		return 0, false
	}
	return float64(seen.Requests) / lower, true
}

// attainable is the expected share E⌊N·p⌋/m of a variation with share p, where N is Poisson with mean m. Beyond twenty
// rounds in an interval the last round costs too little.
func attainable(p, mean float64) float64 {
	if mean == 0 || mean*p > 20 {
		return p
	}
	limit, expected := int(mean+20*math.Sqrt(mean)+20), 0.0
	logMean := math.Log(mean)
	for k := range limit {
		gamma, _ := math.Lgamma(float64(k) + 1)
		expected += math.Floor(float64(k)*p+1e-9) * math.Exp(float64(k)*logMean-mean-gamma)
	}
	return expected / mean
}
