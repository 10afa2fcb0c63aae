// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// ofAll are the gates of the cluster's ledger. The limits and the breaker of a policy
// are kept in its Environment's ledger alone, and that of the cluster has none of them.
func ofAll(name ledger.GateName) bool {
	switch name {
	case ledger.GateBreaker, ledger.GateCooldown, ledger.GateConcurrent, ledger.GateHour, ledger.GateDay:
		return false
	case ledger.GateAge, ledger.GateRoom, ledger.GateTarget, ledger.GateAllConcurrent, ledger.GateAllHour, ledger.GateAllDay:
		return true
	}
	return true
}

// ofPolicyAndAll are the gates of an Environment's ledger: every one.
func ofPolicyAndAll(ledger.GateName) bool { return true }

// granted are the gates of one ledger that it has, named after it.
func granted(in *planner.Input, d *planner.Drift, l Ledger, has func(ledger.GateName) bool) []Gate {
	if !l.Known {
		return []Gate{{Name: l.gate("Ledger"), State: Unknown, Message: "the ledger could not be read"}}
	}
	gates := []Gate{halt(l)}
	status := l.Status
	if status == nil { // the executor makes it when the first step asks
		begun := ledger.Begin(in.Now, !l.PastUnknown)
		status = &begun
	}
	request := ledger.Request{PolicyUID: in.Policy.UID, TargetUID: targetUID(d)}
	for _, g := range ledger.Gates(status, request, l.Rules, in.Now) {
		if has(g.Name) {
			gates = append(gates, l.gateOf(g))
		}
	}
	return gates
}

// targetUID is how the executor names the target in a ledger: one that is to be
// made again has no uid.
func targetUID(d *planner.Drift) string {
	if d.State != v1alpha1.StateMissing {
		return d.UID
	}
	name := d.Namespace + "." + d.Baseline
	return name[:min(len(name), 128)]
}

func (l Ledger) gate(name string) string { return cmp.Or(l.Name, "ledger") + "/" + name }

func halt(l Ledger) Gate {
	if l.Halt == nil {
		return open(l.gate("Halt"), "", "nobody halts it")
	}
	return Gate{Name: l.gate("Halt"), State: Closed, Needs: NeedsChange, Message: l.Halt.RequestedBy + " halted it: " + l.Halt.Reason}
}

func (l Ledger) gateOf(g ledger.Gate) Gate {
	out := Gate{Name: l.gate(string(g.Name)), State: Open, Message: g.Message}
	if isCap(g.Name) && l.CapsUnknown {
		out.State, out.Aside, out.Message = Unknown, true, "how many are allowed is an option of the executor, and not known here"
		return out
	}
	if g.Open {
		return out
	}
	out.State, out.Needs, out.Until = Closed, NeedsEvent, g.Until
	switch {
	case !g.Until.IsZero():
		out.Needs = NeedsTime
	case isCap(g.Name) && allowsNothing(l.Rules.All, g.Name):
		out.Needs = NeedsChange
	}
	return out
}

func isCap(name ledger.GateName) bool {
	return name == ledger.GateAllConcurrent || name == ledger.GateAllHour || name == ledger.GateAllDay
}

// allowsNothing says that a cap of 0 closes a gate for good.
func allowsNothing(caps ledger.Caps, name ledger.GateName) bool {
	limit := map[ledger.GateName]*int32{
		ledger.GateAllConcurrent: caps.Concurrent, ledger.GateAllHour: caps.PerHour, ledger.GateAllDay: caps.PerDay,
	}[name]
	return limit != nil && *limit == 0
}
