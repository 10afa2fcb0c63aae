// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Weight is a share in basis points.
type Weight int

// Total is all of the traffic. It never changes, since where a visitor's key falls
// depends on it.
const Total Weight = 10_000

// Percent returns the share in percent, such as 0.25, without zeros at the end.
func (w Weight) Percent() string {
	return strconv.FormatFloat(float64(w)/float64(Total/100), 'f', -1, 64)
}

// The bounds of shares.
const (
	MinVariations = 2
	MaxVariations = 8
)

// Share is what one variation gets.
type Share struct {
	// Variation is its name within the split.
	Variation string
	// Weight is its share now.
	Weight Weight
	// Reserved is the most it may come to while nobody else is moved; at least
	// Weight. Of the stable variation it is not looked at.
	Reserved Weight
}

// Shares divide all of the traffic. The first share is that of the stable
// variation, which gets what the others leave; its Weight says how much that is.
type Shares []Share

// Stable is the variation that gets what the others leave.
func (s Shares) Stable() string { return s[0].Variation }

// Has says whether a variation has a share, if only one of 0.
func (s Shares) Has(variation string) bool {
	return slices.ContainsFunc(s, func(share Share) bool { return share.Variation == variation })
}

// Validate lists what is wrong with shares; nil when nothing is.
func (s Shares) Validate() error {
	if len(s) < MinVariations || len(s) > MaxVariations {
		return fmt.Errorf("a split has %d to %d variations, not %d", MinVariations, MaxVariations, len(s))
	}
	var errs []error
	names := map[string]bool{}
	var sum, reserved Weight
	for i, share := range s {
		switch {
		case share.Variation == "":
			errs = append(errs, fmt.Errorf("variation %d has no name", i))
		case names[share.Variation]:
			errs = append(errs, fmt.Errorf("variation %s is there twice", share.Variation))
		}
		names[share.Variation] = true
		if share.Weight < 0 || share.Weight > Total {
			errs = append(errs, fmt.Errorf("the weight of %s is %d, want 0 to %d", share.Variation, share.Weight, Total))
		}
		sum += share.Weight
		if i == 0 {
			continue
		}
		if share.Reserved < share.Weight {
			errs = append(errs, fmt.Errorf("%d is reserved for %s, which has %d", share.Reserved, share.Variation, share.Weight))
		}
		reserved += share.Reserved
	}
	if sum != Total {
		errs = append(errs, fmt.Errorf("the weights add up to %d, want %d", sum, Total))
	}
	if reserved > Total {
		errs = append(errs, fmt.Errorf("%d is reserved in all, and there is %d", reserved, Total))
	}
	return errors.Join(errs...)
}

// Segment is a range of keys that one variation has.
type Segment struct {
	Variation string
	Weight    Weight
}

// Layout lays valid shares out from key 0 to Total: the range of each variation but
// the stable one in turn, what it has of it first, and the rest to the stable one.
// Segments are never empty, and of two neighbors never both of one variation. As
// long as what is reserved stays, a weight that grows takes keys from the stable
// variation alone, and one that shrinks gives them back to it alone.
func (s Shares) Layout() []Segment {
	var segments []Segment
	add := func(variation string, weight Weight) {
		last := len(segments) - 1
		switch {
		case weight == 0:
		case last >= 0 && segments[last].Variation == variation:
			segments[last].Weight += weight
		default:
			segments = append(segments, Segment{variation, weight})
		}
	}
	left := Total
	for _, share := range s[1:] {
		add(share.Variation, share.Weight)
		add(s.Stable(), share.Reserved-share.Weight)
		left -= share.Reserved
	}
	add(s.Stable(), left)
	return segments
}
