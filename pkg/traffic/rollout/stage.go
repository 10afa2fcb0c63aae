// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// start leaves Created, by itself or for a person.
func (m *machine) start() bool {
	if v := m.judgeGates(gates.BeforeStart, 0); v.Result == gates.Fail {
		return m.endByGate(v)
	}
	if m.Plan != nil && m.Plan.Start == StartManual || m.Plan == nil {
		return m.waitPerson(WaitStart, "a person to start run %d", m.next.Run.Number)
	}
	return m.deployNow()
}

func (m *machine) deployNow() bool {
	if m.isPaused() || m.isHeld(m.judgeGates(gates.BeforeStart, 0)) || !m.hasReplicas() {
		return false
	}
	run := m.next.Run
	run.State = Deploying
	m.tell(RunStarted, false, "run %d has started: %d stages by %s", run.Number, len(run.Stages), run.strategy())
	return true
}

func (r *Run) strategy() string {
	if r.StrategyName == "" {
		return "its own strategy"
	}
	return "strategy " + r.StrategyName
}

// deploy waits until the canary can take the requests of the first stage.
func (m *machine) deploy() bool {
	run := m.next.Run
	canary, is := m.arm(run.Canary)
	wants := run.required(run.firstWeight())
	switch {
	case !m.isInForce(m.split()):
		return false
	case m.needsWork() && (m.isPaused() || !m.isWorkDone()):
		return false
	case !is || canary.Updated < canary.Targets || canary.Ready < wants:
		return m.waitPods(run.Canary, canary, wants)
	case !m.areGroupPodsUp():
		return m.wait == nil // the deadline has ended the run
	case !m.isControlUp(run.firstWeight()), m.isPaused():
		return false
	}
	switch v := m.judgeGates(gates.BeforeStage, 1); {
	case v.Result == gates.Fail:
		return m.endByGate(v)
	case m.isHeld(v):
		return false
	}
	if changed, over := m.check(); !over {
		return changed
	}
	run.State = Running
	m.shift(0)
	return true
}

// needsWork tells whether the executor has to write something before the first stage.
func (m *machine) needsWork() bool {
	return !m.hasHold() || m.next.Run.isScaled() || m.compares(m.next.Run.firstWeight())
}

// isWorkDone asks the executor for its writes before the first stage, one after the other.
func (m *machine) isWorkDone() bool {
	run := m.next.Run
	switch {
	case !m.hasHold() && !m.isHeldUp(), run.isScaled() && !m.isSized(run.firstSize()):
		return false
	}
	return !m.compares(run.firstWeight()) || m.isControlSized(run.firstWeight())
}

// firstWeight is what the canary needs endpoints for before the first stage. Before a stage without requests it
// is looked at in full size.
func (r *Run) firstWeight() traffic.Weight {
	if first := r.Stages[0].Weight; first > 0 || len(r.Stages) == 1 || !r.hasRequests() {
		return first
	}
	return r.Stages[1].Weight
}

// firstSize is the weight that the executor sizes the canary for before the first stage. A group without replicas
// has no pods to look at.
func (r *Run) firstSize() traffic.Weight {
	if r.Division != nil {
		return r.Stages[0].Weight
	}
	return r.firstWeight()
}

// waitPods waits for the pods of the canary, and ends the run at the deadline.
func (m *machine) waitPods(name string, canary Arm, wants int) bool {
	if !m.until(WaitDeployment, m.deadlines().Deployment, "%s: %d of %d pods have the revision and %d are ready, wants %d; the run is rolled back at the deadline", name, canary.Updated, canary.Targets, canary.Ready, wants) {
		return false
	}
	m.reject(EndDeploymentTimeout)
	m.end(RolledBack, EndDeploymentTimeout, name+" was not ready in time")
	return true
}

// split is what proxies are to have while the canary is deployed.
func (m *machine) split() string {
	run := m.next.Run
	if m.next.IsChecking() {
		return fmt.Sprintf("%s to have %s serve %s%% of the visitors for the cohort check", m.nameRouters(), run.Active, percent(run.Stages[0].Weight))
	}
	return "all requests to go to " + run.Active
}

// shift begins a stage: its weight is wanted from now on.
func (m *machine) shift(i int) {
	stage := &m.next.Run.Stages[i]
	stage.State, stage.ShiftTime, stage.Required = StageRunning, m.Now, m.next.Run.sizedBy(stage.Weight)
	if d := m.next.Run.Division; d != nil {
		d.ShortSince = time.Time{}
	}
	m.shiftControl(stage.Weight)
	m.tell(StageStarted, false, "Starting canary stage %d: %s%%", i+1, percent(stage.Weight))
}

// measure looks at the stage that is under way, in the order of what it needs.
func (m *machine) measure() bool {
	run := m.next.Run
	i := run.current()
	if i < 0 { // no decision leaves it so
		m.shift(0)
		return true
	}
	stage := &run.Stages[i]
	health, during := m.health(i), m.judgeGates(gates.DuringStage, i+1)
	m.grow(stage.Weight)
	m.growControl(stage.Weight)
	m.raiseHold()
	switch {
	case stage.State == StageFailed:
		m.watchControl()
		m.hold(WaitFailed, "stage %d failed and its weight is held: ask to roll back, to try again, or to go on", i+1)
		return false
	case health.Verdict == judge.Fail:
		return m.fail(i, EndFailed, health.Message)
	case during.Result == gates.Fail:
		return m.fail(i, EndGateFailed, during.Message)
	case m.Ordered:
		return m.fail(i, EndFailed, "a leader found a failure, and ordered the prepared rollback while the API server was away")
	}
	m.watchControl()
	return m.proceed(i, health)
}

// proceed takes a stage that has not failed as far as it goes.
func (m *machine) proceed(i int, health Health) bool {
	run := m.next.Run
	stage := &run.Stages[i]
	switch {
	case !m.isInForce(fmt.Sprintf("%s to have %s%% at %s", m.nameRouters(), percent(stage.Weight), run.Canary)):
		return false
	case m.Standing.Contradiction != "":
		return m.waitTold(WaitTraffic, m.deadlines().Acknowledgment, "%s", m.Standing.Contradiction)
	case stage.StartTime.IsZero():
		stage.StartTime = m.Now
		return true
	case stage.PassTime.IsZero():
		return m.pass(i, health)
	case stage.RequireApproval && stage.ApprovedBy == "":
		return m.waitPerson(WaitApproval, "%s to approve stage %d", approver(run.refused(m.Approval)), i+1)
	case !run.Strategy.AutoAdvance && i < len(run.Stages)-1:
		return m.waitPerson(WaitAdvance, "a person to go on to stage %d", i+2)
	}
	return m.goOn(i)
}

// goOn leaves a stage that has passed, unless a gate ahead fails.
func (m *machine) goOn(i int) bool {
	v := m.judgeAhead(i + 1)
	switch {
	case v.Result != gates.Fail:
		return m.advance(i, i+1)
	case i+1 >= len(m.next.Run.Stages):
		return m.endByGate(v)
	}
	return m.fail(i, EndGateFailed, v.Message)
}

// health of a stage; without data if what is known belongs to another stage.
func (m *machine) health(i int) Health {
	if m.Health.Run != m.next.Run.Number || m.Health.Stage != i+1 || m.Health.ShiftTime.Before(m.next.Run.Stages[i].ShiftTime) && !m.Health.ShiftTime.IsZero() {
		return Health{}
	}
	return m.Health
}

// pass waits until the stage was measured for long enough and is healthy.
func (m *machine) pass(i int, health Health) bool {
	stage := &m.next.Run.Stages[i]
	isLast := i == len(m.next.Run.Stages)-1
	if isLast && stage.Duration == 0 {
		return m.passed(i, m.inForceText())
	}
	m.stopClock(stage, health.ClockStopped)
	over := stage.StartTime.Add(stage.Stopped + stage.Duration)
	late := over.Add(m.deadlines().Extension)
	switch {
	case !stage.StoppedSince.IsZero():
		m.hold(WaitProxyCounts, "too few %s tell counts: the clock of stage %d stands", m.nameRouters(), i+1)
		return false
	case health.Verdict == judge.BothBad:
		m.hold(WaitBothBad, "both variations fail, so the stage is held: %s", health.Message)
		return false
	case m.Now.Before(over):
		m.waitUntil(WaitMinimumTime, over, "stage %d to be measured for %s", i+1, stage.Duration)
		return false
	case stage.Weight == 0 && m.next.Run.Division == nil: // no requests, so readiness alone is judged
		return m.passed(i, "the canary is ready")
	case health.Verdict == judge.Pass:
		return m.passed(i, health.Message)
	case health.Verdict != judge.Undecided:
		return m.waitTold(WaitData, m.deadlines().Extension, "no data about stage %d", i+1)
	case m.Now.Before(late):
		m.waitUntil(WaitDecision, late, "more data: %s; at the deadline spec.rollout.onUndecided applies", health.Message)
		return false
	}
	return m.decideUndecided(i, health)
}

func (m *machine) decideUndecided(i int, health Health) bool {
	policy := UndecidedHold
	if m.Plan != nil {
		policy = m.Plan.OnUndecided
	}
	switch policy {
	case UndecidedPromote:
		return m.passed(i, "undecided, and onUndecided is Promote: "+health.Message)
	case UndecidedRollback:
		m.reject(EndUndecided)
		m.end(RolledBack, EndUndecided, fmt.Sprintf("stage %d was undecided: %s", i+1, health.Message))
		return true
	case UndecidedHold:
	}
	m.hold(WaitUndecided, "stage %d is undecided and held: ask to skip it, or to roll back: %s", i+1, health.Message)
	return false
}

// stopClock has the clock of a stage stand while too little is heard.
func (m *machine) stopClock(stage *StageStatus, stopped bool) {
	switch {
	case stopped && stage.StoppedSince.IsZero():
		stage.StoppedSince = m.Now
	case !stopped && !stage.StoppedSince.IsZero():
		stage.Stopped += m.Now.Sub(stage.StoppedSince)
		stage.StoppedSince = time.Time{}
	}
}

func (m *machine) passed(i int, why string) bool {
	if m.isHeld(m.judgeGates(gates.DuringStage, i+1)) {
		return false
	}
	stage := &m.next.Run.Stages[i]
	stage.PassTime, stage.Message = m.Now, why
	m.tell(StagePassed, false, "stage %d passed: %s", i+1, why)
	return true
}

// fail ends the run, or holds it where the strategy does not roll back. The person who has approved a stage
// that is held did not know of the failure.
func (m *machine) fail(i int, reason EndReason, why string) bool {
	stage := &m.next.Run.Stages[i]
	stage.State, stage.EndTime, stage.Message = StageFailed, m.Now, why
	m.tell(StageHasFailed, true, "Stage %d failed health check: %s", i+1, why)
	m.reject(reason)
	if m.next.Run.Strategy.RollbackOnFailure {
		m.end(RolledBack, reason, fmt.Sprintf("stage %d failed: %s", i+1, why))
		return true
	}
	stage.ApprovedBy = ""
	return true
}

// advance goes from one stage to a later one, or to the promotion behind the last.
func (m *machine) advance(from, to int) bool {
	run := m.next.Run
	weight := traffic.Total
	if to < len(run.Stages) {
		weight = run.Stages[to].Weight
	}
	if m.isPaused() || !m.isSized(weight) || !m.isControlSized(weight) || !m.isHeldUp() || !m.hasCapacity(weight) || !m.isControlUp(weight) || m.isHeld(m.judgeAhead(to)) {
		return false
	}
	for i := from; i < min(to, len(run.Stages)); i++ {
		stage := &run.Stages[i]
		switch {
		case stage.State == StageFailed:
		case !stage.PassTime.IsZero():
			stage.State, stage.EndTime = StageSucceeded, m.Now
		default:
			stage.State, stage.EndTime = StageSkipped, m.Now
		}
	}
	if to >= len(run.Stages) {
		m.shiftControl(traffic.Total)
		run.State = Promoting
		return true
	}
	m.tell(StageAdvanced, false, "%s → %s%%", percent(run.Stages[from].Weight), percent(run.Stages[to].Weight))
	m.shift(to)
	return true
}

// rest says what a release without a run waits for: the end of the last one, or another revision.
func (m *machine) rest() bool {
	if !m.isInForce("all requests to go to " + m.next.Active) {
		return false
	}
	canary, is := m.arm(m.canary())
	isShrunk, isBack := m.shrink() && m.shedControl(), m.putBack()
	switch {
	case !isShrunk, !isBack, m.wait != nil:
	case m.Plan == nil:
		m.hold(WaitInvalid, "%s", m.Problem)
	case is && m.next.rejects(m.canary(), canary.Revision):
		m.hold(WaitRevision, "%s was rejected: ask to try it again, or deploy another revision", canary.Revision.name())
	}
	return false
}

// isInForce tells whether what the state asks for is carried out, by proxies or by the replicas of groups; it
// waits otherwise.
func (m *machine) isInForce(what string) bool {
	run := m.next.Run
	switch {
	case run.Division == nil:
		return m.isRouted(what)
	case !run.hasRequests():
		return m.isDivided()
	case run.State.Ended(): // replicas and requests go back at once, and neither waits for the other
		isBack := m.isDivided()
		return m.isRouted(what) && isBack
	}
	return m.isRouted(what) && m.isDivided()
}

// isRouted tells whether proxies have the weight that the state asks for; it waits otherwise.
func (m *machine) isRouted(what string) bool { return m.isSettled() || m.waitProxies(what) }

// isSettled tells whether proxies have the weight that the state asks for.
func (m *machine) isSettled() bool {
	return m.Standing.Active == m.next.Active && m.Standing.Weight == m.next.Weight() && m.Standing.Checking == m.next.IsChecking() && m.isCompared() && m.Standing.Acknowledged
}
