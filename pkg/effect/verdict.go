// SPDX-License-Identifier: Apache-2.0

package effect

// Reason says how an assessment was completed.
type Reason string

// The reasons.
const (
	// Full has an answer of each component that is configured.
	Full Reason = "Full"
	// Partial lacks an answer at the deadline.
	Partial Reason = "Partial"
	// Expired has no answer at the deadline.
	Expired Reason = "Expired"
	// NoExecution is the assessment of a step that wrote nothing.
	NoExecution Reason = "NoExecution"
	// MetricsTimedOut lacks the metrics alone at the deadline.
	MetricsTimedOut Reason = "MetricsTimedOut"
	// SpecDrift is a target that another writer changed before the assessment was completed.
	SpecDrift Reason = "SpecDrift"
	// AlertDecayTimeout is an alert that still fires at the deadline, although all else is well.
	AlertDecayTimeout Reason = "AlertDecayTimeout"
)

// Verdict says whether a write helped.
type Verdict string

// The verdicts.
const (
	// Effective is a write that is in effect, and after which all is well.
	Effective Verdict = "Effective"
	// Ineffective is a write that is in effect, and did not help.
	Ineffective Verdict = "Ineffective"
	// Inconclusive is a write of which too little is known.
	Inconclusive Verdict = "Inconclusive"
	// Invalidated is a write that is not in effect any more.
	Invalidated Verdict = "Invalidated"
)

// effectiveFrom is the least score of an effective write. One component that is at 0 leaves
// at most 7,500 of the three, and 6,155 of two.
const effectiveFrom = 8_000

// VerdictOf is a total function of the reason, the hash and the components. The hash decides
// first, then each component that is bad by itself, then the score.
func VerdictOf(reason Reason, integrity Integrity, c *Components) Verdict {
	switch {
	case reason == SpecDrift || integrity == SpecDrifted:
		return Invalidated
	case reason == NoExecution || integrity != SpecUnchanged:
		return Inconclusive
	}
	for _, name := range names {
		if reason == AlertDecayTimeout && name == Alerts {
			continue // all else is well, and the alert may have been about to resolve
		}
		if component := c.Of(name); component.State == Assessed && component.Bad {
			return Ineffective
		}
	}
	return verdictOfScore(reason, c)
}

// verdictOfScore is the verdict of a write that is in effect, and that no component speaks against.
func verdictOfScore(reason Reason, c *Components) Verdict {
	switch reason {
	case Full, Partial, MetricsTimedOut:
	case Expired, AlertDecayTimeout, NoExecution, SpecDrift:
		return Inconclusive
	default:
		return Inconclusive
	}
	if c.Health.State != Assessed {
		return Inconclusive
	}
	score := ScoreOf(reason, c)
	switch {
	case score == nil && reason == Full: // a kind without pods, whose spec is as it was written
		return Effective
	case score == nil || *score < effectiveFrom:
		return Inconclusive
	}
	return Effective
}
