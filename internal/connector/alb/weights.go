// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// MaxWeight is the largest weight that AWS takes for a target group.
const MaxWeight = 999

// Groups has the ARN of the target group of each variation, by the name of the variation.
type Groups map[string]string

// Check returns an error for each variation of a split without a target group, and for two variations with one group.
func (g Groups) Check(split traffic.Split) error {
	var errs []error
	taken := map[string]string{}
	for _, share := range split.Shares {
		group := g[share.Variation]
		switch {
		case group == "":
			errs = append(errs, fmt.Errorf("variation %s has no target group; name its target group in the router of the release", share.Variation))
		case taken[group] != "":
			errs = append(errs, fmt.Errorf("variations %s and %s share target group %s; give each a target group of its own", taken[group], share.Variation, group))
		}
		taken[group] = share.Variation
	}
	return errors.Join(errs...)
}

// Weights are whole numbers from 0 to [MaxWeight] by the ARN of the target group. One weight at least is above 0.
type Weights map[string]int32

// weightsOf returns the weight of each target group, zeros among them. A variation that another one serves adds to the
// share of the other one.
func weightsOf(split traffic.Split, groups Groups) Weights {
	servedBy := map[string]string{}
	for _, variation := range split.Variations {
		servedBy[variation.Name] = variation.ServedBy
	}
	at := map[string]int{}
	shares := make([]traffic.Weight, len(split.Shares))
	for i, share := range split.Shares {
		at[share.Variation] = i
	}
	for _, share := range split.Shares {
		shares[at[cmp.Or(servedBy[share.Variation], share.Variation)]] += share.Weight
	}
	weights := Weights{}
	for i, weight := range ChooseWeights(shares, MaxWeight) {
		weights[groups[split.Shares[i].Variation]] = int32(weight) //nolint:gosec // at most MaxWeight
	}
	return weights
}

// giveAllTo returns the weights that send all requests to one variation; false if the variation has no target group.
func giveAllTo(variation string, groups Groups) (Weights, bool) {
	weights := Weights{}
	for name, group := range groups {
		if name == variation {
			weights[group] = 1
			continue
		}
		weights[group] += 0
	}
	return weights, groups[variation] != ""
}

// computeShares returns the share that the weights give to each target group, in basis points.
func (w Weights) computeShares() map[string]float64 {
	var sum int32
	for _, weight := range w {
		sum += weight
	}
	shares := map[string]float64{}
	for group, weight := range w {
		shares[group] = float64(weight) / float64(sum) * float64(traffic.Total)
	}
	return shares
}

// ChooseWeights returns whole weights from 0 to limit whose shares come closest to the given ones: the largest error is
// the smallest possible one, and of equal errors the smallest sum is taken. Shares are basis points, and their sum is
// [traffic.Total]. A share of 0 has the weight 0, and each other one a weight above 0. ChooseWeights returns nil if a
// share above 0 is smaller than one part of limit+1, which is 10 basis points for [MaxWeight].
//
// Each possible sum of the weights is tried. For one sum, largest remainders have the smallest largest error.
func ChooseWeights(shares []traffic.Weight, limit int) []int {
	if slices.ContainsFunc(shares, func(share traffic.Weight) bool { return share > 0 && int(share)*(limit+1) < int(traffic.Total) }) {
		return nil
	}
	var best, next apportionment
	next.weights = make([]int, len(shares))
	for sum := 1; sum <= limit*len(shares); sum++ {
		if !next.divideSum(shares, sum, limit) || best.weights != nil && !next.isCloser(best) {
			continue
		}
		best, next.weights = next, make([]int, len(shares))
		if best.off == 0 {
			break
		}
	}
	return best.weights
}

// apportionment are weights with a sum. off is the largest error of their shares, multiplied by the sum, in basis points.
type apportionment struct {
	weights  []int
	sum, off int
}

func (a apportionment) isCloser(other apportionment) bool { return a.off*other.sum < other.off*a.sum }

// divideSum divides a sum by largest remainders; false if a weight would leave its bounds.
func (a *apportionment) divideSum(shares []traffic.Weight, sum, limit int) bool {
	left := sum
	for i, share := range shares {
		a.weights[i] = int(share) * sum / int(traffic.Total)
		left -= a.weights[i]
		if a.weights[i] > limit {
			return false
		}
	}
	for ; left > 0; left-- {
		i := a.findShort(shares, sum, limit)
		if i < 0 {
			return false
		}
		a.weights[i]++
	}
	a.sum, a.off = sum, 0
	for i, share := range shares {
		if share > 0 && a.weights[i] == 0 {
			return false
		}
		a.off = max(a.off, a.computeExcess(shares, i, sum), -a.computeExcess(shares, i, sum))
	}
	return true
}

// findShort returns the weight that is furthest below its share and can grow; -1 if none can.
func (a *apportionment) findShort(shares []traffic.Weight, sum, limit int) int {
	found := -1
	for i, share := range shares {
		if share > 0 && a.weights[i] < limit && (found < 0 || a.computeExcess(shares, i, sum) < a.computeExcess(shares, found, sum)) {
			found = i
		}
	}
	return found
}

// computeExcess returns how much a weight is above its share, multiplied by the sum, in basis points.
func (a *apportionment) computeExcess(shares []traffic.Weight, i, sum int) int {
	return a.weights[i]*int(traffic.Total) - int(shares[i])*sum
}
