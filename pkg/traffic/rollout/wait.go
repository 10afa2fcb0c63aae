// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// WaitReason says what a run waits for, in one word.
type WaitReason string

// The reasons. WaitStart, WaitApproval, WaitAdvance, WaitBaseline, WaitTrust and, in a run, WaitRefusedWork and
// WaitGroupScaled end the run at their deadline, WaitDeployment rolls it back, WaitMinimumTime and WaitControl go on, and WaitDecision does what
// onUndecided says. At the deadline of WaitCapacity, WaitFallback, WaitAcknowledgment, WaitTraffic, WaitData,
// WaitGate, WaitWork and WaitBaselinePods people are told. The others have none.
const (
	WaitStart          WaitReason = "ManualStart"
	WaitDeployment     WaitReason = "Deployment"
	WaitCapacity       WaitReason = "Capacity"
	WaitFallback       WaitReason = "FallbackShrunk"
	WaitAcknowledgment WaitReason = "Acknowledgment"
	WaitTraffic        WaitReason = "Contradicted"
	WaitMinimumTime    WaitReason = "MinimumTime"
	WaitDecision       WaitReason = "MoreData"
	WaitUndecided      WaitReason = "Undecided"
	WaitData           WaitReason = "NoData"
	WaitProxyCounts    WaitReason = "ProxiesSilent"
	WaitBothBad        WaitReason = "BothBad"
	WaitApproval       WaitReason = "Approval"
	WaitAdvance        WaitReason = "ManualAdvance"
	WaitCohortCheck    WaitReason = "CohortCheck"
	WaitGate           WaitReason = "Gate"
	WaitPaused         WaitReason = "Paused"
	WaitFailed         WaitReason = "StageFailed"
	WaitRevision       WaitReason = "RevisionRejected"
	WaitInvalid        WaitReason = "InvalidSpec"
	WaitReturn         WaitReason = "Deletion"
	WaitWork           WaitReason = "WorkPending"
	WaitRefusedWork    WaitReason = "WorkRefused"
	WaitTrust          WaitReason = "RequesterNotTrusted"
	WaitBaseline       WaitReason = "BaselineUnchanged"
	WaitBaselinePods   WaitReason = "BaselineRollout"
	WaitGroupScaled    WaitReason = "GroupScaled"
	WaitControl        WaitReason = "Control"
)

// defaultDeadlines hold while the spec cannot be read.
var defaultDeadlines = Deadlines{Deployment: 10 * time.Minute, Acknowledgment: 10 * time.Minute, Approval: 7 * 24 * time.Hour, Extension: 30 * time.Minute}

func (m *machine) deadlines() Deadlines {
	if m.Plan == nil {
		return defaultDeadlines
	}
	return m.Plan.Deadlines
}

// since is when the run began to wait for a reason: now, or what is stored.
func (m *machine) since(reason WaitReason) time.Time {
	if w := m.Before.Waiting; w != nil && w.Reason == reason && m.Before.Run != nil && m.Before.Run.Number == m.next.Run.Number &&
		m.Before.Run.State == m.next.Run.State && m.Before.Run.current() == m.next.Run.current() {
		return w.Since
	}
	return m.Now
}

// hold waits for something that no time ends.
func (m *machine) hold(reason WaitReason, format string, args ...any) {
	m.wait = &Wait{Reason: reason, Since: m.since(reason), Message: fmt.Sprintf(format, args...)}
}

// waitUntil waits for a time.
func (m *machine) waitUntil(reason WaitReason, deadline time.Time, format string, args ...any) {
	m.hold(reason, format, args...)
	m.wait.Deadline = deadline
	m.lookAt(deadline)
}

// until waits with a deadline, and tells whether the deadline is over.
func (m *machine) until(reason WaitReason, within time.Duration, format string, args ...any) bool {
	deadline := m.since(reason).Add(within)
	if !m.Now.Before(deadline) {
		return true
	}
	m.waitUntil(reason, deadline, format, args...)
	return false
}

// waitTold waits, and tells people once when the deadline is over. It returns false.
func (m *machine) waitTold(reason WaitReason, within time.Duration, format string, args ...any) bool {
	deadline := m.since(reason).Add(within)
	m.hold(reason, format, args...)
	m.wait.Deadline = deadline
	switch {
	case m.Now.Before(deadline):
		m.lookAt(deadline)
	case !m.toldSince(deadline):
		m.tell(WaitOverdue, true, "run %d waits for %s since %s: %s", m.next.Run.Number, reason, m.wait.Since.UTC().Format(time.RFC3339), m.wait.Message)
	}
	return false
}

// toldSince tells whether people were told about a deadline of this run.
func (m *machine) toldSince(deadline time.Time) bool {
	return slices.ContainsFunc(m.next.History, func(e Entry) bool {
		return e.Event == WaitOverdue && e.Run == m.next.Run.Number && !e.Time.Before(deadline)
	})
}

// waitPerson waits for a person, and ends the run without a verdict at the deadline.
func (m *machine) waitPerson(reason WaitReason, format string, args ...any) bool {
	if !m.until(reason, m.deadlines().Approval, format+"; the run is rolled back at the deadline", args...) {
		return false
	}
	m.end(RolledBack, EndApprovalTimeout, "no person came in time: "+fmt.Sprintf(format, args...))
	return true
}

// nameRouters returns the noun of the routers that carry the split out.
func (m *machine) nameRouters() string { return cmp.Or(m.Routers, "proxies") }

// waitProxies waits until proxies have what is wanted; false.
func (m *machine) waitProxies(what string) bool {
	return m.waitTold(WaitAcknowledgment, m.deadlines().Acknowledgment, "%s", what)
}

// isPaused tells whether a person keeps the run from going forward; it waits then.
func (m *machine) isPaused() bool {
	if m.Paused {
		m.hold(WaitPaused, "spec.rollout.pause is Enabled: no stage goes on, and a failure rolls back")
	}
	return m.Paused
}

func (m *machine) lookAt(t time.Time) {
	if m.again.IsZero() || t.Before(m.again) {
		m.again = t
	}
}
