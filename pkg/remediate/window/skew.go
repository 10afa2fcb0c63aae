// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"math"
	"time"
)

// MaxClockSkew is how far the own clock may be from the API server's before
// nothing that depends on the time is done any more. A window is therefore kept
// to within this much of the API server's time, and the second by which a Date
// header, which tells whole seconds, leaves that open.
const MaxClockSkew = 5 * time.Second

// SkewUnknown is the skew of a clock that has not been compared yet. It is
// beyond every bound: what is not known is not allowed.
const SkewUnknown = time.Duration(math.MinInt64)

// ActsOnTime tells whether a clock may decide what depends on the time, by how
// far it is ahead of the API server's; behind is negative. If not, it says why.
func ActsOnTime(skew time.Duration) (Block, bool) {
	switch {
	case skew == SkewUnknown:
		return Block{ReasonClockSkew, "the own clock has not been compared with the API server's"}, false
	case skew > MaxClockSkew:
		return skewed(skew.String() + " ahead of"), false
	case skew < -MaxClockSkew:
		return skewed((-skew).String() + " behind"), false
	default:
		return Block{}, true
	}
}

func skewed(by string) Block {
	return Block{ReasonClockSkew, fmt.Sprintf("the own clock is %s the API server's, more than %v", by, MaxClockSkew)}
}

// Decide is [Schedule.At] for a clock that may be wrong: beyond [MaxClockSkew]
// a schedule that is time-gated is closed, and when it changes is not known.
func (s Schedule) Decide(now time.Time, skew time.Duration) State {
	if b, ok := ActsOnTime(skew); !ok && s.zone != nil && s.TimeGated() {
		return blocked(b)
	}
	return s.At(now)
}
