// SPDX-License-Identifier: Apache-2.0

package effect

// Formula is the version of [ScoreOf]. A stored score names the version that it was computed by.
const Formula = 1

// Weight of a component in basis points: 0.40, 0.35 and 0.25 of design document 004.
func Weight(name Name) int64 {
	switch name {
	case Health:
		return 4_000
	case Alerts:
		return 3_500
	case Metrics:
		return 2_500
	}
	return 0
}

// ScoreOf returns the weighted mean of the scores that there are, in basis points, rounded half
// up; nil if there is none. A target that has drifted scores 0, and an assessment without an
// execution scores nothing.
func ScoreOf(reason Reason, c *Components) *int32 {
	switch reason {
	case NoExecution:
		return nil
	case SpecDrift:
		return new(int32(0))
	case Full, Partial, Expired, MetricsTimedOut, AlertDecayTimeout:
	default:
		return nil
	}
	var sum, weights int64
	for _, name := range names {
		component := c.Of(name)
		if component.State != Assessed || component.Score == nil {
			continue
		}
		weights += Weight(name)
		if !component.Bad { // no score speaks for what the verdict speaks against
			sum += Weight(name) * int64(min(max(*component.Score, 0), Best))
		}
	}
	if weights == 0 {
		return nil
	}
	return new(int32((2*sum + weights) / (2 * weights))) //nolint:gosec // at most Best
}
