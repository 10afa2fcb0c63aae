// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"slices"
	"time"
)

// The numbers of repairs that are a chain: design document 004.
const (
	// Regressions in a row.
	Regressions = 3
	// ForwardRepairs within an hour, of which each begins where the last one ended.
	ForwardRepairs = 2
	// MostInWindow within four hours.
	MostInWindow = 5
)

const (
	chainWindow   = 4 * time.Hour
	forwardWindow = time.Hour
)

// Repair is one write of an action on one target, as its assessment remembers it.
type Repair struct {
	// WrittenTime by the API server.
	WrittenTime time.Time
	// PreHash and PostHash are those before and after the write. They are equal for a restart,
	// which changes nothing in the spec.
	PreHash, PostHash string
	// Verdict is empty while the repair is being measured.
	Verdict Verdict
	// Plan names the plan of the repair, for people.
	Plan string
}

// Match says where the live target stands between the two states of a repair.
type Match string

// The matches.
const (
	// MatchUnknown is a live hash that is not known.
	MatchUnknown Match = "Unknown"
	// Regression is a target that is as it was before the repair.
	Regression Match = "Regression"
	// InEffect is a target that is as the repair left it.
	InEffect Match = "InEffect"
	// MovedOn is a target in neither state.
	MovedOn Match = "MovedOn"
)

// MatchOf compares the live hash with the two of a repair. A repair that changed nothing in the
// spec is in effect, and is no regression.
func MatchOf(r Repair, live string) Match {
	switch {
	case live == "" || r.PostHash == "":
		return MatchUnknown
	case live == r.PostHash:
		return InEffect
	case live == r.PreHash:
		return Regression
	}
	return MovedOn
}

// ChainRule names the rule by which repairs are a chain that does not help.
type ChainRule string

// The rules. ChainNone is no chain.
const (
	ChainNone ChainRule = ""
	// ChainUnknown is a history that could not be read, which holds a repair as a chain does.
	ChainUnknown ChainRule = "HistoryUnknown"
	// ChainRegressions are three repairs in a row whose target went back.
	ChainRegressions ChainRule = "Regressions"
	// ChainForward are two repairs within an hour, each of which begins where the last one ended,
	// and of which none helped.
	ChainForward ChainRule = "ForwardChain"
	// ChainTooMany are five repairs within four hours.
	ChainTooMany ChainRule = "TooManyRepairs"
)

// Chain is a row of repairs that did not help.
type Chain struct {
	Rule ChainRule
	// Repairs of the chain, the oldest first.
	Repairs []Repair
}

// Assessed says that a repair of the chain has a verdict. A chain of an unknown history counts as
// assessed: what is not known holds.
func (c *Chain) Assessed() bool {
	return c.Rule == ChainUnknown || slices.ContainsFunc(c.Repairs, func(r Repair) bool { return r.Verdict != "" })
}

// EndTime is when the chain is none by time alone, because its repairs count no more; zero if time
// alone ends it never.
func (c *Chain) EndTime() time.Time {
	switch n := len(c.Repairs); c.Rule {
	case ChainRegressions:
		return c.Repairs[n-Regressions].WrittenTime.Add(chainWindow + time.Second)
	case ChainForward:
		return c.Repairs[n-ForwardRepairs].WrittenTime.Add(forwardWindow + time.Second)
	case ChainTooMany:
		return c.Repairs[n-MostInWindow].WrittenTime.Add(chainWindow + time.Second)
	case ChainNone, ChainUnknown:
	}
	return time.Time{}
}

// IsRecent says that a repair counts for a chain at a time.
func IsRecent(r Repair, now time.Time) bool { return !r.WrittenTime.Before(now.Add(-chainWindow)) }

// FindChain looks for a chain in the repairs of one action on one target, whatever drift, plan
// or policy they are of. Repairs before the time cleared do not count: a person has looked at them.
// Without history the caller passes known as false.
func FindChain(history []Repair, known bool, live string, now, cleared time.Time) Chain {
	if !known {
		return Chain{Rule: ChainUnknown}
	}
	recent := slices.DeleteFunc(slices.Clone(history), func(r Repair) bool {
		return !IsRecent(r, now) || !r.WrittenTime.After(cleared)
	})
	slices.SortStableFunc(recent, func(a, b Repair) int { return a.WrittenTime.Compare(b.WrittenTime) })
	if back := trailingRegressions(recent, live); len(back) >= Regressions {
		return Chain{ChainRegressions, back}
	}
	if row := forwardChain(recent, live, now); len(row) >= ForwardRepairs {
		return Chain{ChainForward, row}
	}
	if len(recent) >= MostInWindow {
		return Chain{ChainTooMany, recent}
	}
	return Chain{}
}

// trailingRegressions are the last repairs, up to the newest one that is no regression.
func trailingRegressions(recent []Repair, live string) []Repair {
	from := len(recent)
	for from > 0 && MatchOf(recent[from-1], live) == Regression {
		from--
	}
	return recent[from:]
}

// forwardChain are the last repairs within an hour of which each begins where the one before
// ended, and the last one is in effect. A repair that helped ends the chain, and so does a
// restart, which leads from a state to itself.
func forwardChain(recent []Repair, live string, now time.Time) []Repair {
	from := len(recent)
	for from > 0 {
		r := recent[from-1]
		ends := live
		if from < len(recent) {
			ends = recent[from].PreHash
		}
		if r.WrittenTime.Before(now.Add(-forwardWindow)) || r.Verdict == Effective || r.PreHash == r.PostHash || ends == "" || r.PostHash != ends {
			break
		}
		from--
	}
	return recent[from:]
}
