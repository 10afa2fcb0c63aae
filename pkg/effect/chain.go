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
	// ChainWindow is how long a repair counts for a chain. The plan of a repair has to be there for so long.
	ChainWindow   = 4 * time.Hour
	forwardWindow = time.Hour
)

// Repair is one write of an action on one target, as its assessment remembers it.
type Repair struct {
	// WrittenTime by the API server.
	WrittenTime time.Time
	// PreHash and PostHash are those before and after the write. They are equal for a restart,
	// which changes nothing in the spec.
	PreHash, PostHash string
	// Verdict is empty while the repair is being measured, and where no effect is assessed.
	Verdict Verdict
	// Unread says that the verdict should be known and cannot be read: the assessment is gone.
	Unread bool
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
	// ChainUnknown is a chain by its hashes and its times, of which no verdict can be read. It holds a
	// repair as each other chain does.
	ChainUnknown ChainRule = "HistoryUnknown"
	// ChainRegressions are three repairs in a row whose target went back.
	ChainRegressions ChainRule = "Regressions"
	// ChainForward are two repairs within an hour, each of which begins where the last one ended,
	// and of which none helped.
	ChainForward ChainRule = "ForwardChain"
	// ChainTooMany are five repairs within four hours.
	ChainTooMany ChainRule = "TooManyRepairs"
)

// ChainRules are the rules of chains, ChainNone excluded.
func ChainRules() []ChainRule {
	return []ChainRule{ChainUnknown, ChainRegressions, ChainForward, ChainTooMany}
}

// Chain is a row of repairs that did not help.
type Chain struct {
	Rule ChainRule
	// Repairs of the chain, the oldest first.
	Repairs []Repair
	// Until is when the chain is none by time alone, because its repairs count no more.
	Until time.Time
}

// IsRecent says that a repair counts for a chain at a time.
func IsRecent(r Repair, now time.Time) bool { return !r.WrittenTime.Before(now.Add(-ChainWindow)) }

// FindChain looks for a chain in the repairs of one action on one target, whatever drift, plan
// or policy they are of. Repairs before the time cleared do not count: a person has looked at them.
func FindChain(history []Repair, live string, now, cleared time.Time) Chain {
	recent := slices.DeleteFunc(slices.Clone(history), func(r Repair) bool {
		return !IsRecent(r, now) || !r.WrittenTime.After(cleared)
	})
	slices.SortStableFunc(recent, func(a, b Repair) int { return a.WrittenTime.Compare(b.WrittenTime) })
	for _, found := range []Chain{
		chainOf(ChainRegressions, trailingRegressions(recent, live), Regressions, ChainWindow),
		chainOf(ChainForward, forwardChain(recent, live, now), ForwardRepairs, forwardWindow),
		chainOf(ChainTooMany, recent, MostInWindow, ChainWindow),
	} {
		if found.Rule != ChainNone {
			return found
		}
	}
	return Chain{}
}

// chainOf returns the chain of at least so many repairs. Repairs without any verdict are those of an
// installation that assesses no effect, and are no chain, unless a verdict of theirs cannot be read.
func chainOf(rule ChainRule, repairs []Repair, least int, window time.Duration) Chain {
	if len(repairs) < least {
		return Chain{}
	}
	if !slices.ContainsFunc(repairs, func(r Repair) bool { return r.Verdict != "" }) {
		if !slices.ContainsFunc(repairs, func(r Repair) bool { return r.Unread }) {
			return Chain{}
		}
		rule = ChainUnknown
	}
	return Chain{rule, repairs, repairs[len(repairs)-least].WrittenTime.Add(window + time.Second)}
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
