// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// memory is what a router keeps of the exchanges about one split.
type memory struct {
	// answer is nil if the last exchange failed, or there was none.
	answer *Answer
	// failed says why the last exchange has no answer.
	failed string
	// at is when the last exchange ended.
	at time.Time
	// accepted is since when the receiver has had the split without a break; zero while it has not.
	accepted time.Time
}

// expected is the split that a receiver should have.
type expected struct {
	// router is the name that people read.
	router   string
	sequence uint64
	shares   traffic.Shares
	told     time.Time
	settle   time.Duration
}

// judge returns the observation that follows from what the receiver said last.
func judge(want expected, m memory) traffic.Observation {
	seen := traffic.Observation{Knowledge: traffic.Unknown, Wanted: 1}
	late := func(has uint64, why string) traffic.Observation {
		seen.OutOfSync = []traffic.OutOfSync{{Name: want.router, Has: has, Why: why, Since: want.told}}
		return seen
	}
	a := m.answer
	switch {
	case a == nil && m.failed != "":
		return late(0, m.failed)
	case a == nil:
		return late(0, "the receiver has not answered yet")
	}
	seen.Sequence, seen.Arms = min(a.Sequence, want.sequence), armsOf(want.shares, a.Outcomes)
	switch {
	case a.Sequence > want.sequence:
		seen.Knowledge, seen.Ahead = traffic.Contradicted, a.Sequence
		return late(a.Sequence, fmt.Sprintf("the receiver has the later sequence %d", a.Sequence))
	case a.Sequence < want.sequence:
		return late(a.Sequence, withMessage(fmt.Sprintf("the receiver has sequence %d", a.Sequence), a.Message))
	}
	if why := differ(want.shares, a.Shares); why != "" {
		seen.Knowledge = traffic.Contradicted
		return late(a.Sequence, why)
	}
	switch a.Knowledge {
	case traffic.Proven:
		seen.Knowledge, seen.Acknowledged = traffic.Proven, 1
	case traffic.Accepted:
		seen.Knowledge, seen.Acknowledged, seen.SettledAt = traffic.Accepted, 1, m.accepted.Add(want.settle)
	case traffic.Unknown, traffic.NoProxies, traffic.Contradicted:
		return late(a.Sequence, withMessage("the receiver does not know whether the split is effective", a.Message))
	}
	return seen
}

// isTaken tells whether a receiver has a split as it should: then the router asks, and does not tell again.
func isTaken(seen traffic.Observation) bool {
	return seen.Knowledge == traffic.Proven || seen.Knowledge == traffic.Accepted
}

func withMessage(text, message string) string {
	if message == "" {
		return text
	}
	return text + ": " + message
}

// differ says which share of a receiver is another one; "" if none is, or the receiver tells no shares.
func differ(want traffic.Shares, has map[string]traffic.Weight) string {
	if len(has) == 0 {
		return ""
	}
	for _, share := range want {
		if weight := has[share.Variation]; weight != share.Weight {
			return fmt.Sprintf("the receiver gives %s %% to %s, want %s %%", weight.Percent(), share.Variation, share.Weight.Percent())
		}
	}
	return ""
}

func armsOf(shares traffic.Shares, outcomes []Outcome) []traffic.Arm {
	if len(outcomes) == 0 {
		return nil
	}
	of := map[string]*traffic.Outcomes{}
	for _, o := range outcomes {
		of[o.Variation] = &traffic.Outcomes{
			Window: time.Duration(o.WindowSeconds) * time.Second, Completed: o.Completed, Failed: o.Failed, InFlight: o.InFlight,
		}
	}
	arms := make([]traffic.Arm, len(shares))
	for i, share := range shares {
		arms[i] = traffic.Arm{Variation: share.Variation, Outcomes: of[share.Variation]}
	}
	return arms
}
