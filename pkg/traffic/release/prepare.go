// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// number gives a state its sequences, and tells whether the sequence grew. A decision in a run takes
// two sequences: its own, and the next one for its rollback, which nothing else ever has. The decision
// that does what is prepared takes that sequence, so that it agrees with replicas that were ordered to.
func (f Facts) number(next *State) (grew bool) {
	prepares := f.Prepares && next.Split.Shares[0].Weight < traffic.Total
	if before := f.Before; before != nil && f.Ahead == 0 {
		switch {
		case !differs(before.Split, next.Split) && prepares == (before.Prepared > 0):
			next.Prepared = before.Prepared
			return false
		case before.Prepared > 0 && !prepares && !differs(before.Retreated().Split, next.Split):
			next.Split.Sequence = before.Prepared
			return true
		}
	}
	next.Split.Sequence = f.sequence() + 1
	if prepares {
		next.Prepared = next.Split.Sequence + 1
	}
	return true
}

// sequence is the highest one that is taken.
func (f Facts) sequence() uint64 {
	return max(f.Floor, f.Ahead, f.Before.Last())
}

// Last is the highest sequence that a state has taken; 0 of nil.
func (s *State) Last() uint64 {
	if s == nil {
		return 0
	}
	return max(s.Split.Sequence, s.Prepared)
}

// Retreated returns the state after its prepared rollback: the first variation has all requests, no range
// changes, and a cohort check is over. It is for a state with a Prepared sequence.
func (s *State) Retreated() *State {
	next := *s
	next.Split, next.Wanted = retreat(s.Split, s.Prepared), withdraw(s.Wanted)
	next.Clamped, next.Prepared = nil, 0
	return &next
}

// retreat sends all requests of a split to its first variation.
func retreat(split traffic.Split, sequence uint64) traffic.Split {
	split.Sequence, split.Shares, split.Variations = sequence, withdraw(split.Shares), slices.Clone(split.Variations)
	for i := range split.Variations {
		split.Variations[i].ServedBy = ""
	}
	return split
}

func withdraw(shares traffic.Shares) traffic.Shares {
	shares = slices.Clone(shares)
	for i := range shares {
		shares[i].Weight = 0
	}
	shares[0].Weight = traffic.Total
	return shares
}

// Obey returns the split that a replica has to publish for a release of which it was ordered to carry out
// the prepared rollbacks with some sequences. obeys is false, and the split is what the status says, if the
// status has prepared none of them: the orders are of decisions that are past or not seen yet.
func Obey(r *v1alpha1.ABRelease, orders []uint64) (split traffic.Split, obeys, is bool) {
	if split, is = SplitOf(r); !is {
		return split, false, false
	}
	prepared := uint64(max(r.Status.Effective.PreparedSequence, 0)) //nolint:gosec // it is not negative
	if prepared == 0 || !slices.Contains(orders, prepared) {
		return split, false, true
	}
	return retreat(split, prepared), true, true
}
