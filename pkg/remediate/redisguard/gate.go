// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// gate is what a refusal by a limit can look like.
type gate struct {
	// limit that is reached; nil for gates that count nothing.
	limit *int32
	// period after which an entry no longer closes the gate.
	period time.Duration
	// ahead is how far in the future a ledger's own time may lie.
	ahead time.Duration
	// timed gates always say until when, eventful ones never do.
	timed, eventful bool
	text            string
}

func (g gate) message(n int64) string {
	if g.limit == nil {
		return g.text
	}
	return fmt.Sprintf("%d of %d %s", n, *g.limit, g.text)
}

// gateOf describes a gate under these rules; known is false for one that cannot
// be closed under them.
func gateOf(name ledger.GateName, rules ledger.Rules) (g gate, known bool) {
	p, all := rules.Policy, rules.All
	switch name {
	case ledger.GateAge:
		return gate{ahead: day, timed: true, text: "the ledger was recreated, and the grants before are unknown"}, true
	case ledger.GateRoom:
		return gate{eventful: true, text: "the ledger is full"}, true
	case ledger.GateBreaker:
		return gate{period: p.OpenDuration, ahead: p.VerdictTimeout, text: "the breaker is not closed"}, true
	case ledger.GateTarget:
		return gate{period: p.Cooldown, text: "this target is written, or was a moment ago"}, true
	case ledger.GateCooldown:
		return gate{period: p.Cooldown, timed: true, text: "the policy remediated something a moment ago"}, p.Cooldown > 0
	case ledger.GateConcurrent:
		return counting(p.Concurrent, 0)
	case ledger.GateHour:
		return counting(p.PerHour, hour)
	case ledger.GateDay:
		return counting(p.PerDay, day)
	case ledger.GateAllConcurrent:
		return counting(all.Concurrent, 0)
	case ledger.GateAllHour:
		return counting(all.PerHour, hour)
	case ledger.GateAllDay:
		return counting(all.PerDay, day)
	default:
		return gate{}, false
	}
}

// counting describes a gate that counts entries, which is never closed without a
// limit. A period of 0 is that of steps which have not ended.
func counting(limit *int32, period time.Duration) (gate, bool) {
	g := gate{limit: limit, period: period, eventful: period == 0, text: "at once"}
	if period > 0 {
		g.text = "in the last " + text(period)
	}
	return g, limit != nil
}

func text(period time.Duration) string {
	if period == hour {
		return "hour"
	}
	return "24 hours"
}
