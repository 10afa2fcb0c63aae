// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
)

// promote ends the run: the canary becomes the active variation, or the active variation gets the change of
// the canary and its requests back.
func (m *machine) promote() bool {
	run := m.next.Run
	m.learnBaseline() // the run may have come here in this decision
	switch {
	case run.ReturnTime.IsZero() && !m.isInForce("all requests to go to "+run.Canary):
		return false
	case !m.isInForce("all requests to return to " + run.Active):
		return false
	case !run.isCloned():
		m.end(Completed, EndPromoted, "all stages passed")
		return true
	case !run.ReturnTime.IsZero():
		m.end(Completed, EndPromoted, fmt.Sprintf("all stages passed, and %s has the change", m.baseline()))
		return true
	case !m.hasChange():
		return m.changeBaseline()
	case !m.isBaselineReady() || m.isPaused():
		return false
	}
	run.ReturnTime = m.Now
	m.tell(BaselineUpdated, false, "run %d: %s has the change: all requests return to %s", run.Number, m.baseline(), run.Active)
	return true
}

// hasChange tells whether the active variation has the change of the run. A revision that the run has seen
// with the change has it, whatever the spec asks for since.
func (m *machine) hasChange() bool {
	run := m.next.Run
	active, is := m.arm(run.Active)
	return is && (m.asksForRun() && m.Clone.Changed || run.Baseline.Hash != "" && active.Revision.Is(run.Baseline))
}

// asksForRun tells whether the spec asks for the change of the run still.
func (m *machine) asksForRun() bool { return m.Clone != nil && m.Clone.Hash == m.next.Run.Change }

// supersedePromotion ends the promotion of a clone when the spec asks for another change, or when the active
// variation got a change that is not that of the run. A change while the executor has been asked to make
// one holds the run: the executor refuses it.
func (m *machine) supersedePromotion() {
	run := m.next.Run
	canary, is := m.arm(run.Canary)
	if !is || canary.Revision.Is(run.To) || !run.ReturnTime.IsZero() || m.hasChange() {
		return
	}
	active, isKnown := m.arm(run.Active)
	isForeign := isKnown && !active.Revision.Is(run.From)
	if w := m.next.lastWork(); m.asksForRun() && isForeign && w != nil && w.Verb == ChangeBaseline {
		return
	}
	m.end(RolledBack, EndSuperseded, run.Canary+" has another revision: "+canary.Revision.name())
}

// settlePromotion has a run follow the spec from one way to change the baseline to the other: a person can
// so go on where the executor refuses.
func (m *machine) settlePromotion() {
	if m.next.IsOn() && m.next.Run.isCloned() && m.Plan != nil && m.Plan.Promotion.returns() {
		m.next.Run.Promotion = m.Plan.Promotion
	}
}

// learnBaseline remembers the revision of the active variation that has the change of the run.
func (m *machine) learnBaseline() {
	run := m.next.Run
	if !m.next.IsOn() || run.State != Promoting || !run.isCloned() || !m.asksForRun() || !m.Clone.Changed {
		return
	}
	if active, is := m.arm(run.Active); is {
		run.Baseline = active.Revision
	}
}

// changeBaseline has the executor change the active variation, or waits for its owner.
func (m *machine) changeBaseline() bool {
	run := m.next.Run
	w := m.next.lastWork()
	switch {
	case run.Promotion == AwaitBaseline:
		return m.waitPerson(WaitBaseline, "%s to get the change, by its owner: %s", m.baseline(), m.change())
	case m.isPaused():
		return false
	case w == nil || w.Verb != ChangeBaseline:
		if m.isIdle() {
			m.ask(ChangeBaseline, 0)
			m.waitWork(m.next.lastWork())
		}
		return false
	case !m.isIdle():
		return false
	}
	return m.waitPerson(WaitBaseline, "%s to have the change that work %d has made: another writer has undone it; if a tool of GitOps owns it, merge there: %s", m.baseline(), w.Number, m.change())
}

func (m *machine) change() string {
	if m.Clone == nil || m.Clone.Change == "" {
		return "that of " + m.next.Run.Canary
	}
	return m.Clone.Change
}

// isBaselineReady tells whether the active variation can take all requests with the change; it waits
// otherwise.
func (m *machine) isBaselineReady() bool {
	run := m.next.Run
	active, is := m.arm(run.Active)
	if is && active.Updated >= active.Targets && active.Updated >= run.Capacity && active.Ready >= run.Capacity {
		return true
	}
	m.waitTold(WaitBaselinePods, m.deadlines().Deployment, "%s: %d of %d pods have the change and %d are ready, wants %d. If its autoscaler has shrunk it, raise minReplicas until the run is over",
		m.baseline(), active.Updated, active.Targets, active.Ready, run.Capacity)
	return false
}
