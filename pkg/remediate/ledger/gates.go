// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// GateName names a limit.
type GateName string

// The gates, in the order in which they are looked at.
const (
	// GateAge: what was done before the ledger was made is not known.
	GateAge GateName = "LedgerAge"
	// GateRoom: the ledger has room for another entry.
	GateRoom GateName = "LedgerRoom"
	// GateBreaker: the policy's circuit breaker.
	GateBreaker GateName = "CircuitBreaker"
	// GateTarget: nobody else writes the same target, nor did a moment ago.
	GateTarget GateName = "TargetCooldown"
	// GateCooldown: the policy's last step ended long enough ago.
	GateCooldown GateName = "Cooldown"
	// GateConcurrent: steps of the policy that have not ended.
	GateConcurrent GateName = "MaxConcurrent"
	// GateHour: steps of the policy within an hour.
	GateHour GateName = "MaxPerHour"
	// GateDay: steps of the policy within a day.
	GateDay GateName = "MaxPerDay"
	// GateAllConcurrent: all steps in this ledger that have not ended.
	GateAllConcurrent GateName = "CapConcurrent"
	// GateAllHour: all steps in this ledger within an hour.
	GateAllHour GateName = "CapPerHour"
	// GateAllDay: all steps in this ledger within a day.
	GateAllDay GateName = "CapPerDay"
)

// Gate is where one limit stands.
type Gate struct {
	Name GateName
	Open bool
	// Until is when a closed gate opens by time alone; zero when something has to
	// happen first.
	Until time.Time
	// Message says for people where it stands, open or not.
	Message string
}

// Gates holds a request against every limit. The order is fixed.
func Gates(s *Status, r Request, rules Rules, now time.Time) []Gate {
	own := func(e *v1alpha1.LedgerEntry) bool { return e.PolicyUID == r.PolicyUID }
	all := func(*v1alpha1.LedgerEntry) bool { return true }
	return []Gate{
		age(s, now),
		room(s, r, rules, now),
		breakerGate(s, r, rules.Policy, now),
		target(s, r, rules.Policy, now),
		cooldown(s, rules.Policy, now, own),
		concurrent(GateConcurrent, s, rules.Policy.Concurrent, own),
		within(GateHour, s, rules.Policy.PerHour, hour, now, own),
		within(GateDay, s, rules.Policy.PerDay, day, now, own),
		concurrent(GateAllConcurrent, s, rules.All.Concurrent, all),
		within(GateAllHour, s, rules.All.PerHour, hour, now, all),
		within(GateAllDay, s, rules.All.PerDay, day, now, all),
	}
}

func age(s *Status, now time.Time) Gate {
	if s.Sequence == 0 {
		return Gate{Name: GateAge, Message: "the ledger is not ready yet"}
	}
	if s.GrantStartTime == nil || !s.GrantStartTime.After(now) {
		return Gate{Name: GateAge, Open: true, Message: "the ledger knows the last 24 hours"}
	}
	return Gate{
		Name: GateAge, Until: s.GrantStartTime.Time,
		Message: "the ledger was recreated, and the grants before are unknown: it grants no steps until " + s.GrantStartTime.UTC().Format(time.RFC3339),
	}
}

// room refuses when an entry, or the breaker that its failure may need, has no
// place: what cannot be written down may not be done.
func room(s *Status, r Request, rules Rules, now time.Time) Gate {
	entries := number(s, func(e *v1alpha1.LedgerEntry) bool { return counts(e, day, now) })
	needsBreaker := rules.Policy.FailureThreshold > 0 && breakerOf(s, r.PolicyUID) == nil
	if entries < maxEntries && (!needsBreaker || len(s.Breakers) < maxBreakers) {
		return Gate{Name: GateRoom, Open: true, Message: fmt.Sprintf("%d of %d entries are taken", entries, maxEntries)}
	}
	return Gate{Name: GateRoom, Message: fmt.Sprintf("the ledger is full: %d of %d entries, %d of %d breakers", entries, maxEntries, len(s.Breakers), maxBreakers)}
}

// target keeps two steps from the same object, and gives it time after one.
func target(s *Status, r Request, limits Limits, now time.Time) Gate {
	gate := Gate{Name: GateTarget, Open: true, Message: "no other plan writes this target"}
	for i := range s.Entries {
		e := &s.Entries[i]
		switch {
		case e.TargetUID != r.TargetUID:
		case e.CompletionTime == nil:
			return Gate{Name: GateTarget, Message: fmt.Sprintf("plan %s/%s writes this target", e.Namespace, e.PlanName)}
		case limits.Cooldown > 0 && e.CompletionTime.Add(limits.Cooldown).After(now):
			gate = closedUntil(gate, GateTarget, e.CompletionTime.Add(limits.Cooldown), "this target was remediated a moment ago")
		}
	}
	return gate
}

func cooldown(s *Status, limits Limits, now time.Time, of func(*v1alpha1.LedgerEntry) bool) Gate {
	gate := Gate{Name: GateCooldown, Open: true, Message: fmt.Sprintf("no remediation in the last %s", limits.Cooldown)}
	if limits.Cooldown <= 0 {
		return gate // an end is stored as the second after it, which nobody asked to wait for
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if !of(e) || e.CompletionTime == nil {
			continue
		}
		if until := e.CompletionTime.Add(limits.Cooldown); until.After(now) {
			gate = closedUntil(gate, GateCooldown, until, "the policy remediated something a moment ago")
		}
	}
	return gate
}

// closedUntil closes a gate, until the latest of all reasons.
func closedUntil(g Gate, name GateName, until time.Time, why string) Gate {
	if !g.Open && !until.After(g.Until) {
		return g
	}
	return Gate{Name: name, Until: until, Message: why + ": wait until " + until.UTC().Format(time.RFC3339)}
}

func concurrent(name GateName, s *Status, limit *int32, of func(*v1alpha1.LedgerEntry) bool) Gate {
	n := number(s, func(e *v1alpha1.LedgerEntry) bool { return of(e) && e.CompletionTime == nil })
	if limit == nil {
		return Gate{Name: name, Open: true, Message: fmt.Sprintf("%d at once, no limit", n)}
	}
	return Gate{Name: name, Open: n < *limit, Message: fmt.Sprintf("%d of %d at once", n, *limit)}
}

// within bounds the entries of a period. It opens when enough of those that have
// ended count no more.
func within(name GateName, s *Status, limit *int32, period time.Duration, now time.Time, of func(*v1alpha1.LedgerEntry) bool) Gate {
	n := number(s, func(e *v1alpha1.LedgerEntry) bool { return of(e) && counts(e, period, now) })
	if limit == nil {
		return Gate{Name: name, Open: true, Message: fmt.Sprintf("%d in the last %s, no limit", n, text(period))}
	}
	gate := Gate{Name: name, Open: n < *limit, Message: fmt.Sprintf("%d of %d in the last %s", n, *limit, text(period))}
	if !gate.Open {
		gate.Until = reopensAt(s, *limit, period, now, of)
	}
	return gate
}

func text(period time.Duration) string {
	if period == hour {
		return "hour"
	}
	return "24 hours"
}
