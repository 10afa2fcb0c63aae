// SPDX-License-Identifier: Apache-2.0

package traffic

import "slices"

// Wish is what somebody wants one variation to have. The first of several is about
// the stable one.
type Wish struct {
	Variation string
	Weight    Weight
	// Reserved is its range, if Reserves says that one is asked for.
	Reserved Weight
	Reserves bool
}

// Reserve gives each variation its weight, and a range in which it grows. before is
// the split until now, whose ranges stay as long as the weights fit in; nil if there
// was none. moved says that visitors go from one variation to another because ranges
// could not stay.
//
// Ranges that are asked for are given. Otherwise the second of two variations has all
// of it, so that its visitors stay its own up to the end; of more, each has an equal
// part.
func Reserve(wishes []Wish, before Shares) (next Shares, moved bool) {
	next = make(Shares, len(wishes))
	asked := false
	for i, w := range wishes {
		next[i] = Share{Variation: w.Variation, Weight: w.Weight}
		if i > 0 && w.Reserves {
			asked, next[i].Reserved = true, max(w.Reserved, w.Weight)
		}
	}
	if !asked {
		divide(next, before)
		fit(next)
	}
	return next, relocates(before, next)
}

// divide has the ranges stay, or makes equal ones if there were none of these
// variations.
func divide(next, before Shares) {
	same := len(before) == len(next)
	for i := range next {
		same = same && before[i].Variation == next[i].Variation
	}
	for i := 1; i < len(next); i++ { // there may be none at all
		next[i].Reserved = Total / Weight(len(next)-1)
		if same {
			next[i].Reserved = before[i].Reserved
		}
	}
}

// fit makes each range as large as its weight, and takes what is missing from where
// nobody is and which is next: only those are moved that lie between.
func fit(s Shares) {
	for i := 1; i < len(s); i++ {
		missing := max(0, s[i].Weight-s[i].Reserved)
		free := Total
		for _, share := range s[1:] {
			free -= share.Reserved
		}
		s[i].Reserved += missing
		for distance := 1; missing > 0 && distance <= len(s); distance++ {
			for _, from := range []int{i + distance, i - distance} {
				var taken Weight
				switch {
				case from == len(s): // what no range has lies behind the last one
					taken = min(missing, free)
				case from >= 1 && from < len(s):
					taken = min(missing, max(0, s[from].Reserved-s[from].Weight))
					s[from].Reserved -= taken
				}
				missing -= taken
			}
		}
	}
}

// relocates says whether the range of a variation that has visitors begins elsewhere.
func relocates(before, next Shares) bool {
	starts := next.starts()
	was := before.starts()
	for i, share := range before {
		if i == 0 || share.Weight == 0 {
			continue
		}
		at := slices.IndexFunc(next, func(s Share) bool { return s.Variation == share.Variation })
		if at == 0 && share.Weight == Total && next[0].Weight == Total {
			continue // it has all visitors, before and after
		}
		if at == 0 || at > 0 && starts[at] != was[i] {
			return true
		}
	}
	return false
}

// starts of the ranges; that of the stable one is 0 and means nothing.
func (s Shares) starts() []Weight {
	starts, at := make([]Weight, len(s)), Weight(0)
	for i := 1; i < len(s); i++ {
		starts[i] = at
		at += s[i].Reserved
	}
	return starts
}
