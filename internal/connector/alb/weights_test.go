// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// fraction is a share that two weights give to the first of them.
type fraction struct{ weight, sum int }

// off is the error of a fraction for a share in basis points, as a fraction of a basis point.
func (f fraction) off(share int) fraction {
	return fraction{max(f.weight*int(traffic.Total)-share*f.sum, share*f.sum-f.weight*int(traffic.Total)), f.sum}
}

func (f fraction) compare(other fraction) int { return f.weight*other.sum - other.weight*f.sum }

// allFractions are the shares above 0 and below all that two weights to MaxWeight can give, in order: the naive twin.
func allFractions() []fraction {
	var all []fraction
	for first := 1; first <= MaxWeight; first++ {
		for second := 1; second <= MaxWeight; second++ {
			all = append(all, fraction{first, first + second})
		}
	}
	slices.SortFunc(all, fraction.compare)
	return all
}

func TestNoTwoWeightsComeCloserToASplit(t *testing.T) {
	all, worst, coarse := allFractions(), fraction{0, 1}, 0
	for share := 10; share <= int(traffic.Total)-10; share++ {
		weights := ChooseWeights([]traffic.Weight{traffic.Weight(share), traffic.Total - traffic.Weight(share)}, MaxWeight)
		if len(weights) != 2 || slices.Min(weights) < 1 || slices.Max(weights) > MaxWeight {
			t.Fatalf("%d basis points get the weights %v", share, weights)
		}
		got := fraction{weights[0], weights[0] + weights[1]}.off(share)
		at, _ := slices.BinarySearchFunc(all, fraction{share, int(traffic.Total)}, fraction.compare)
		for _, near := range all[max(0, at-1):min(len(all), at+1)] {
			if near.off(share).compare(got) < 0 {
				t.Fatalf("%d basis points get the weights %v, and %v comes closer", share, weights, near)
			}
		}
		if got.compare(worst) > 0 {
			worst = got
		}
		if got.compare(fraction{1, 2}) >= 0 {
			coarse++
		}
	}
	if worst.compare(fraction{1, 1}) != 0 || coarse != 22 {
		t.Errorf("the largest error is %d/%d basis points, and %d shares have an error from half of a basis point on; want 1 and 22", worst.weight, worst.sum, coarse)
	}
}

func TestWeightsOfASplit(t *testing.T) {
	for name, tc := range map[string]struct {
		shares []traffic.Weight
		want   []int
	}{
		"all requests at one of two":              {[]traffic.Weight{10_000, 0}, []int{1, 0}},
		"all requests at the canary":              {[]traffic.Weight{0, 10_000}, []int{0, 1}},
		"half and half":                           {[]traffic.Weight{5_000, 5_000}, []int{1, 1}},
		"a tenth":                                 {[]traffic.Weight{9_000, 1_000}, []int{9, 1}},
		"the smallest share":                      {[]traffic.Weight{9_990, 10}, []int{999, 1}},
		"the smallest share twice":                {[]traffic.Weight{9_980, 10, 10}, []int{998, 1, 1}},
		"a share that no two weights give":        {[]traffic.Weight{5_001, 4_999}, []int{1, 1}},
		"a third each":                            {[]traffic.Weight{3_334, 3_333, 3_333}, []int{1, 1, 1}},
		"eight variations, some without requests": {[]traffic.Weight{2_500, 0, 2_500, 0, 2_500, 0, 1_250, 1_250}, []int{2, 0, 2, 0, 2, 0, 1, 1}},
		"a share that is too small":               {[]traffic.Weight{9_995, 5}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, ChooseWeights(tc.shares, MaxWeight)); d != "" {
				t.Errorf("the weights (-want +got):\n%s", d)
			}
		})
	}
}

// The naive twin tries all weights.
func TestNoWeightsOfThreeComeCloserToASplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		first := rapid.IntRange(0, int(traffic.Total)).Draw(t, "first")
		second := rapid.IntRange(0, int(traffic.Total)-first).Draw(t, "second")
		shares := []traffic.Weight{traffic.Weight(first), traffic.Weight(second), traffic.Weight(int(traffic.Total) - first - second)}
		got, best := ChooseWeights(shares, limit), tryAllWeights(shares, limit)
		small := slices.ContainsFunc(shares, func(share traffic.Weight) bool { return share > 0 && int(share)*(limit+1) < int(traffic.Total) })
		if (got == nil) != small {
			t.Fatalf("%v to %d gets %v, and a share is too small: %t", shares, limit, got, small)
		}
		if got == nil {
			return
		}
		for i, share := range shares {
			if (share == 0) != (got[i] == 0) || got[i] < 0 || got[i] > limit {
				t.Fatalf("%v to %d gets %v", shares, limit, got)
			}
		}
		if of := offOf(shares, got); best.isCloser(of) {
			t.Fatalf("%v to %d gets %v, and %v comes closer", shares, limit, got, best.weights)
		}
	})
}

func offOf(shares []traffic.Weight, weights []int) apportionment {
	a := apportionment{weights: weights}
	for _, weight := range weights {
		a.sum += weight
	}
	for i := range shares {
		excess := a.computeExcess(shares, i, a.sum)
		a.off = max(a.off, excess, -excess)
	}
	return a
}

func tryAllWeights(shares []traffic.Weight, limit int) (best apportionment) {
	for first := range limit + 1 {
		for second := range limit + 1 {
			for third := range limit + 1 {
				weights := []int{first, second, third}
				kept := first+second+third > 0
				for i, share := range shares {
					kept = kept && (share == 0) == (weights[i] == 0)
				}
				if next := offOf(shares, weights); kept && (best.weights == nil || next.isCloser(best)) {
					best = next
				}
			}
		}
	}
	return best
}

func TestEachVariationNeedsATargetGroupOfItsOwn(t *testing.T) {
	split := splitOf(1, 1_000)
	for name, tc := range map[string]struct {
		groups Groups
		want   string
	}{
		"each has one":         {groupsOf("stable", "canary"), ""},
		"one has none":         {Groups{"stable": groupARN("stable")}, "variation canary has no target group; name its target group in the router of the release"},
		"two share one":        {Groups{"stable": groupARN("stable"), "canary": groupARN("stable")}, "variations stable and canary share target group " + groupARN("stable") + "; give each a target group of its own"},
		"no variation has one": {nil, "variation stable has no target group; name its target group in the router of the release\nvariation canary has no target group; name its target group in the router of the release"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.groups.Check(split); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestAVariationThatAnotherOneServesHasTheWeightZero(t *testing.T) {
	split := splitOf(1, 4_000)
	split.Variations[1].ServedBy = "stable"
	want := Weights{groupARN("stable"): 1, groupARN("canary"): 0}
	if d := cmp.Diff(want, weightsOf(split, groupsOf("stable", "canary"))); d != "" {
		t.Errorf("the weights (-want +got):\n%s", d)
	}
}
