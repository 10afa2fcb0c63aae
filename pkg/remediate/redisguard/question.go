// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
	// never is after every end, and exact in the script's numbers.
	never = int64(1)<<53 - 1
)

// question are the arguments of ask.lua.
//
// An entry that ended at the whole second s counts while s + period is after now,
// which is while s is after now - period, rounded down. So the script compares
// whole seconds, and is exact for a now and periods of any precision.
func question(sequence int64, r ledger.Request, rules ledger.Rules, now time.Time) []any {
	cut := func(period time.Duration) int64 { return now.Add(-period).Unix() }
	p, all := rules.Policy, rules.All
	cooled := cut(p.Cooldown)
	if p.Cooldown <= 0 {
		cooled = never // an end may be stored as the second after now
	}
	return []any{
		sequence, r.PolicyUID, r.TargetUID, stepField(r.Step),
		cut(0), cut(hour), cut(day), cooled, cut(p.OpenDuration),
		flag(p.FailureThreshold > 0), maxEntries, maxBreakers,
		limit(p.Concurrent), limit(p.PerHour), limit(p.PerDay),
		limit(all.Concurrent), limit(all.PerHour), limit(all.PerDay),
	}
}

// limit is a cap; the empty text is none.
func limit(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
