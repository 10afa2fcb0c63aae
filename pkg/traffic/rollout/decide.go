// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"
)

// machine carries one decision.
type machine struct {
	Facts
	next   State
	events []Event
	wait   *Wait
	again  time.Time
	// spec is the change of the spec while the run goes on with another one; nil if it does not.
	spec *Kept
}

// Decide says what becomes of a release now. The same facts with the state that it returns change
// nothing.
func Decide(f Facts) Decision {
	f.Now = f.Now.Truncate(time.Second) // times are stored in whole seconds
	m := &machine{Facts: f, next: f.Before.clone()}
	m.settleVariations()
	if f.Deletion != nil {
		m.settleWorks()
		returned := m.giveBack()
		return m.decided(returned)
	}
	m.settleGates()
	m.settleWorks()
	m.keepChange()
	m.settlePromotion()
	m.learnLabels()
	m.learnBaseline()
	m.supersede()
	m.learnImages()
	m.endAltered()
	m.measureCapacity()
	m.obey()
	m.begin()
	if m.goForward(); !m.next.IsOn() { // what comes after a run that has ended just now
		if m.begin(); m.next.IsOn() {
			m.goForward()
		}
	}
	m.shrinkEarly()
	m.shedControlEarly()
	m.putBackEarly()
	m.passOver()
	return m.decided(false)
}

// goForward moves the run as far as it goes. Each stage moves at most twice.
func (m *machine) goForward() {
	for range 2*MaxStages + 8 {
		was := m.next.runState()
		if m.wait = nil; !m.step() && m.next.runState() == was {
			return
		}
	}
}

func (m *machine) decided(returned bool) Decision {
	m.next.Waiting = m.wait
	return Decision{After: m.next, Weight: m.next.Weight(), Canary: m.canary(), Checking: m.next.IsChecking(), Comparison: m.next.Comparison(), Events: m.events, Problem: m.Problem, Again: m.again, Returned: returned, Works: m.missing()}
}

// settleVariations has an active variation that there is. A release whose variations were renamed begins
// with the stable one, and its run ends.
func (m *machine) settleVariations() {
	is := func(variation string) bool { return slices.Contains(m.Variations[:], variation) }
	if m.next.IsOn() && (!is(m.next.Run.Active) || !is(m.next.Run.Canary)) {
		m.end(RolledBack, EndSuperseded, "the variations of the release are others now")
	}
	if !is(m.next.Active) || m.Clone != nil && m.Clone.Variation == m.next.Active { // a clone is made from the active one
		if m.next.IsOn() {
			m.end(RolledBack, EndSuperseded, "the variations of the release are others now")
		}
		m.next.Active, m.next.Seen = m.Stable, map[string]Revision{}
	}
}

// canary is the variation that is not active.
func (m *machine) canary() string {
	if m.Variations[0] == m.next.Active {
		return m.Variations[1]
	}
	return m.Variations[0]
}

// step moves the run forward once; false if it waits or is at its end.
func (m *machine) step() bool {
	if m.next.Run == nil {
		return false
	}
	switch m.next.Run.State {
	case Created:
		return m.start()
	case Deploying:
		return m.deploy()
	case Running:
		return m.measure()
	case Promoting:
		return m.promote()
	case Completed, RolledBack:
		return m.rest()
	}
	return false
}

// learnLabels keeps the label of a revision, once pods of that revision alone are there. Of a release with a
// clone it keeps the last hash and label of a revision: that of the clone follows from that of the baseline,
// which gets another label with the change.
func (m *machine) learnLabels() {
	learn := func(variation string, known *Revision) {
		arm, is := m.arm(variation)
		if !is || !known.Is(arm.Revision) {
			return
		}
		if m.Clone != nil || m.Groups != nil { // the executor compares hashes, which an upgrade of Kubernetes changes
			known.Hash = arm.Revision.Hash
		}
		if arm.Revision.Label != "" && (known.Label == "" || m.Clone != nil) {
			known.Label = arm.Revision.Label
		}
	}
	if m.next.IsOn() {
		learn(m.next.Run.Active, &m.next.Run.From)
		learn(m.next.Run.Canary, &m.next.Run.To)
	}
	for variation, seen := range m.next.Seen {
		learn(variation, &seen)
		m.next.Seen[variation] = seen
	}
}

// arm of a variation; false if nothing is known of it.
func (m *machine) arm(variation string) (Arm, bool) {
	arm, is := m.Arms[variation]
	return arm, is && arm.Revision.Hash != ""
}

// supersede ends a run whose canary has another revision, and voids the measurement of a run whose
// active variation has.
func (m *machine) supersede() {
	if !m.next.IsOn() {
		return
	}
	run := m.next.Run
	if run.State == Promoting && run.isCloned() {
		m.supersedePromotion()
		return
	}
	if canary, is := m.arm(run.Canary); is && !canary.Revision.Is(run.To) {
		m.end(RolledBack, EndSuperseded, run.Canary+" has another revision: "+canary.Revision.name())
		return
	}
	if active, is := m.arm(run.Active); is && !active.Revision.Is(run.From) {
		run.From = active.Revision
		m.void(run.Active + " has another revision: " + active.Revision.name())
	}
}

// void begins the measurement of the stage anew. An approval is of one comparison, so that of a stage whose
// clock has not begun ends as well.
func (m *machine) void(why string) {
	i := m.next.Run.current()
	if i < 0 || m.next.Run.State != Running {
		return
	}
	stage := &m.next.Run.Stages[i]
	by := stage.ApprovedBy
	stage.ApprovedBy = ""
	if stage.State != StageRunning || stage.StartTime.IsZero() {
		if by != "" {
			m.tell(MeasurementVoided, true, "the approval of stage %d by %s is void: %s", i+1, by, why)
		}
		return
	}
	stage.StartTime, stage.PassTime, stage.Stopped, stage.StoppedSince, stage.Message = time.Time{}, time.Time{}, 0, time.Time{}, ""
	stage.Restarts++
	m.tell(MeasurementVoided, true, "the measurement of stage %d restarts: %s", i+1, why)
}

// measureCapacity remembers the most endpoints that the active variation had, and since when the
// canary has too few.
func (m *machine) measureCapacity() {
	if !m.next.IsOn() {
		return
	}
	run := m.next.Run
	if active, is := m.arm(run.Active); is {
		run.Capacity = max(run.Capacity, run.capacityOf(active))
	}
	i := run.current()
	if i < 0 {
		return
	}
	stage := &run.Stages[i]
	m.measureGroup(stage)
	canary, is := m.arm(run.Canary)
	if !is {
		return
	}
	switch {
	case canary.Ready >= run.requiredIn(stage):
		stage.ShortSince = time.Time{}
	case stage.ShortSince.IsZero():
		stage.ShortSince = m.Now
	}
}

// begin makes a run of a revision of the canary that was not taken up yet.
func (m *machine) begin() {
	if m.next.IsOn() {
		return
	}
	canary, is := m.arm(m.canary())
	active, isActive := m.arm(m.next.Active)
	switch {
	case !is || !isActive || m.Plan == nil || m.next.Seen[m.canary()].Is(canary.Revision):
		return
	case m.next.rejects(m.canary(), canary.Revision):
		return
	case m.Clone != nil && m.Clone.Changed: // there is nothing to go to
		return
	case m.next.owesGroups(): // the next run divides what this one has given back
		return
	}
	m.create(canary.Revision, active)
	m.learnImages()
}

// passOver notes, while no run is on, the revision of a clone that the active variation has already.
func (m *machine) passOver() {
	canary, is := m.arm(m.canary())
	if _, isActive := m.arm(m.next.Active); !is || !isActive || m.next.IsOn() || m.Plan == nil || m.Clone == nil || !m.Clone.Changed {
		return
	}
	if !m.next.Seen[m.canary()].Is(canary.Revision) && !m.next.rejects(m.canary(), canary.Revision) {
		m.next.Seen[m.canary()] = canary.Revision
	}
}

func (m *machine) create(to Revision, active Arm) {
	number := int64(1)
	if m.next.Run != nil {
		number = m.next.Run.Number + 1
	}
	run := &Run{
		Number: number, State: Created, Active: m.next.Active, Canary: m.canary(), From: active.Revision, To: to,
		Approval: m.approvalOf(to), StrategyName: m.Plan.StrategyName, Strategy: m.Plan.Strategy, StartTime: m.Now,
		Control: m.newControl(),
	}
	if m.Clone != nil {
		run.Promotion, run.Change = m.Plan.Promotion, m.Clone.Hash
	}
	if m.Groups != nil {
		run.Division = &Division{Routed: m.Groups.Routed}
	}
	run.Capacity = run.capacityOf(active)
	run.Strategy.Stages, run.Strategy.Queries = slices.Clone(run.Strategy.Stages), slices.Clone(run.Strategy.Queries)
	run.Check = checkOf(m.Plan)
	for _, stage := range run.Strategy.Stages {
		run.Stages = append(run.Stages, StageStatus{Stage: stage, State: StagePending})
	}
	m.next.Run, m.next.Seen[run.Canary], m.next.Gates, m.next.Works = run, to, nil, nil
	m.tell(RunCreated, false, "run %d: %s from %s to %s", number, run.Canary, run.From.name(), run.To.name())
}

// end closes the run. The stage under way keeps a failure, and is skipped otherwise.
func (m *machine) end(state RunState, reason EndReason, message string) {
	run := m.next.Run
	for i := range run.Stages {
		if stage := &run.Stages[i]; stage.State == StageRunning {
			stage.State, stage.EndTime = StageSkipped, m.Now
		}
	}
	m.dropWorks()
	m.takeUpSpec()
	run.State, run.EndTime, run.EndReason, run.EndMessage, run.ActiveImages = state, m.Now, reason, message, nil
	switch {
	case state == Completed && run.isCloned():
		m.tell(RunPromoted, false, "run %d: %s has the revision of %s: %s", run.Number, run.Active, run.Canary, message)
		return
	case state == Completed:
		if run.Division != nil {
			run.Division.SettleTime = m.Now
		}
		m.next.Seen[run.Active] = run.From
		m.next.Active = run.Canary
		m.tell(RunPromoted, false, "run %d: %s is the active variation: %s", run.Number, run.Canary, message)
		return
	}
	m.tell(RunRolledBack, reason != EndRequested && reason != EndActivePromoted, "run %d: all %s go to %s: %s", run.Number, run.divides(), run.Active, message)
}

// reject remembers the revision of the run as bad.
func (m *machine) reject(reason EndReason) {
	run := m.next.Run
	if m.next.rejects(run.Canary, run.To) {
		return
	}
	m.next.Rejected = append(m.next.Rejected, Rejected{run.To, run.Canary, run.Number, reason, m.Now})
	if extra := len(m.next.Rejected) - MaxRejected; extra > 0 {
		m.next.Rejected = m.next.Rejected[extra:]
	}
}

// name of a revision for people.
func (r Revision) name() string {
	short := r.Hash
	if len(short) > 8 {
		short = short[len(short)-8:]
	}
	if r.Image == "" {
		return "…" + short
	}
	return r.Image + " (…" + short + ")"
}
