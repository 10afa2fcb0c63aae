// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"time"
)

// Returns is how long a variation has to have ready endpoints until it gets its
// share back. A pod that becomes ready and dies again must not take visitors with
// it each time.
const Returns = 10 * time.Second

// Clamped is a variation whose share the stable one has.
type Clamped struct {
	Variation string
	// Since is when it had no ready endpoints for the first time.
	Since time.Time
	// ReadySince is when it had some again; zero while it has none.
	ReadySince time.Time
}

// Clamp takes the share of each variation that has no ready endpoints, and gives it
// to the stable one, and to nobody else: that more visitors get a version that is
// on trial was not asked for. While the stable one has none either, nobody's share is
// taken, which would help nobody, and a clamped one that is ready gets its own back at
// once, since nobody else can answer. before is what was clamped until now; the result
// is what is, in the order of the split. Whoever has not been told of a variation's
// endpoints counts as having none.
func Clamp(wanted Shares, ready map[string]int, before []Clamped, now time.Time) (effective Shares, after []Clamped) {
	effective = slices.Clone(wanted)
	if ready[wanted.Stable()] == 0 {
		for _, c := range before {
			if ready[c.Variation] == 0 {
				c.ReadySince = time.Time{} // what it had is gone, so it waits anew
				after = append(after, c)
			}
		}
		return held(effective, after), after
	}
	for i := range effective {
		share := &effective[i]
		if i == 0 {
			continue
		}
		c, clamped := clampOf(share.Variation, ready[share.Variation] > 0, before, now)
		if !clamped {
			continue
		}
		after = append(after, c)
		effective[0].Weight += share.Weight
		share.Weight = 0
	}
	return effective, after
}

// clampOf says whether a variation is clamped, and since when.
func clampOf(variation string, ready bool, before []Clamped, now time.Time) (Clamped, bool) {
	i := slices.IndexFunc(before, func(c Clamped) bool { return c.Variation == variation })
	if i < 0 {
		return Clamped{Variation: variation, Since: now}, !ready
	}
	c := before[i]
	switch {
	case !ready:
		c.ReadySince = time.Time{}
	case c.ReadySince.IsZero():
		c.ReadySince = now
	case !now.Before(c.ReadySince.Add(Returns)):
		return Clamped{}, false
	}
	return c, true
}

// held leaves clamped what was.
func held(s Shares, before []Clamped) Shares {
	for i := range s {
		if i > 0 && slices.ContainsFunc(before, func(c Clamped) bool { return c.Variation == s[i].Variation }) {
			s[0].Weight += s[i].Weight
			s[i].Weight = 0
		}
	}
	return s
}

// NextReturn is when the first of them gets its share back if nothing changes; zero
// when none does.
func NextReturn(clamped []Clamped) time.Time {
	var next time.Time
	for _, c := range clamped {
		if c.ReadySince.IsZero() {
			continue
		}
		if at := c.ReadySince.Add(Returns); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
