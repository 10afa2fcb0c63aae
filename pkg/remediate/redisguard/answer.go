// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// Verdict is what a mirror says about a step.
type Verdict string

// The verdicts. None of them grants anything.
const (
	// Unknown: the mirror has no veto, for a Reason. It is what the zero Answer
	// says too.
	Unknown Verdict = ""
	// Allowed: the copy of the ledger that was asked about has nothing against it.
	Allowed Verdict = "Allowed"
	// Refused: a limit is reached.
	Refused Verdict = "Refused"
)

// Reason says why a mirror has no veto.
type Reason string

// The reasons.
const (
	// ReasonDisabled: there is no Redis.
	ReasonDisabled Reason = "Disabled"
	// ReasonResting: it failed a few times in a row, and is left alone for a while.
	ReasonResting Reason = "Resting"
	// ReasonSlow: it did not answer in time.
	ReasonSlow Reason = "Slow"
	// ReasonUnreachable: no connection, or one that broke.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonServerError: it answered with an error, e.g. OOM, READONLY or LOADING.
	ReasonServerError Reason = "ServerError"
	// ReasonNonsense: an answer that no mirror gives.
	ReasonNonsense Reason = "Nonsense"
	// ReasonMissing: it has no copy.
	ReasonMissing Reason = "Missing"
	// ReasonBehind: its copy is older than what was asked about.
	ReasonBehind Reason = "Behind"
	// ReasonDamaged: somebody else wrote to its copy.
	ReasonDamaged Reason = "Damaged"
	// ReasonStale: its copy is newer than what was asked about. Who asked has read
	// an old ledger, or the ledger went back (a restored backup).
	ReasonStale Reason = "Stale"
	// ReasonUnready: the ledger has not begun, or its sequence cannot be.
	ReasonUnready Reason = "Unready"
	// ReasonCanceled: who asked no longer wants to know.
	ReasonCanceled Reason = "Canceled"
)

// reasons in a fixed order, for metrics.
var reasons = []Reason{
	ReasonDisabled, ReasonResting, ReasonSlow, ReasonUnreachable, ReasonServerError, ReasonNonsense,
	ReasonMissing, ReasonBehind, ReasonDamaged, ReasonStale, ReasonUnready, ReasonCanceled,
}

// ErrStale says that Redis has a later copy than the one that was to be put.
var ErrStale = errors.New("redis has a later copy of the ledger")

// MirrorError is an error of a mirror with its reason.
type MirrorError struct {
	Reason Reason
	Err    error
}

// Error implements error.
func (f *MirrorError) Error() string { return fmt.Sprintf("mirror: %s: %v", f.Reason, f.Err) }

// Unwrap gives the cause.
func (f *MirrorError) Unwrap() error { return f.Err }

// Answer is what a mirror says about a step. Only [Answer.Vetoed] matters to
// whether it may go on; the rest is for people and metrics.
type Answer struct {
	Verdict Verdict
	// Refused is the first closed gate, when Verdict is Refused. It has the name
	// and the time that the ledger's own gate would have.
	Refused ledger.Gate
	// Reason why Verdict is Unknown.
	Reason Reason
	// Err is what went wrong, when something did.
	Err error
	// Sequence of the copy, when it is Behind or Stale.
	Sequence int64
}

// Vetoed says that the step has to wait.
func (a Answer) Vetoed() bool { return a.Verdict == Refused }

// wantsCopy says that a Put would help.
func (a Answer) wantsCopy() bool {
	return a.Verdict == Unknown && (a.Reason == ReasonMissing || a.Reason == ReasonBehind || a.Reason == ReasonDamaged)
}

func unknown(why Reason, err error) Answer { return Answer{Reason: why, Err: err} }

func nonsense(format string, args ...any) Answer {
	return unknown(ReasonNonsense, fmt.Errorf("reading an answer of redis: "+format, args...))
}

// slack is by how much a time in the ledger may lie after the caller's now: ends
// are rounded up to the second, and two callers' clocks differ by a little.
const slack = time.Minute

// answered reads what ask.lua returned. It believes nothing that the script could
// not have said about these rules at this time.
func answered(reply any, rules ledger.Rules, now time.Time) Answer {
	words, ok := textsOf(reply)
	if !ok || len(words) == 0 {
		return nonsense("%.60q", fmt.Sprint(reply))
	}
	switch what, rest := words[0], words[1:]; {
	case what == "allowed" && len(rest) == 0:
		return Answer{Verdict: Allowed}
	case what == "missing" && len(rest) == 0:
		return unknown(ReasonMissing, nil)
	case what == "damaged" && len(rest) == 0:
		return unknown(ReasonDamaged, nil)
	case what == "behind" && len(rest) == 1:
		return elsewhere(ReasonBehind, rest[0])
	case what == "stale" && len(rest) == 1:
		return elsewhere(ReasonStale, rest[0])
	case what == "refused" && len(rest) == 3:
		return refusal(ledger.GateName(rest[0]), rest[1], rest[2], rules, now)
	}
	return nonsense("%.60q", words)
}

// textsOf are the texts of an array of nothing but texts, and few of them.
func textsOf(reply any) ([]string, bool) {
	list, ok := reply.([]any)
	if !ok || len(list) > 4 {
		return nil, false
	}
	words := make([]string, len(list))
	for i, x := range list {
		if words[i], ok = x.(string); !ok {
			return nil, false
		}
	}
	return words, true
}

func elsewhere(why Reason, sequence string) Answer {
	n, err := strconv.ParseInt(sequence, 10, 64)
	if err != nil || n < 0 {
		return nonsense("a sequence of %.40q", sequence)
	}
	return Answer{Reason: why, Sequence: n}
}

// refusal reads a refusal: count entries are in the way, and time alone opens the
// gate one period after base; without a base something has to happen first.
func refusal(name ledger.GateName, count, base string, rules ledger.Rules, now time.Time) Answer {
	g, known := gateOf(name, rules)
	n, err := strconv.ParseInt(count, 10, 32)
	if !known || err != nil || n < 0 || g.limit != nil && n < int64(*g.limit) {
		return nonsense("refused by %.40q, %.20q", name, count)
	}
	closed := ledger.Gate{Name: name, Message: g.message(n)}
	if base == "" {
		if g.timed {
			return nonsense("refused by %q with no time", name)
		}
		return Answer{Verdict: Refused, Refused: closed}
	}
	seconds, err := strconv.ParseInt(base, 10, 64)
	from := time.Unix(seconds, 0)
	if err != nil || g.eventful || from.After(now.Add(g.ahead+slack)) || !from.Add(g.period).After(now) {
		return nonsense("refused by %q from %.40q", name, base)
	}
	closed.Until = from.Add(g.period).UTC()
	closed.Message += ": wait until " + closed.Until.Format(time.RFC3339)
	return Answer{Verdict: Refused, Refused: closed}
}
