// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
)

// Verb is what a person asks of a run.
type Verb string

// The verbs.
const (
	// VerbStart leaves Created.
	VerbStart Verb = "Start"
	// VerbAdvance goes on to a later stage; stages between are skipped.
	VerbAdvance Verb = "Advance"
	// VerbApprove approves the stage under way.
	VerbApprove Verb = "Approve"
	// VerbSkip skips the stage under way, or the cohort check before the first one.
	VerbSkip Verb = "Skip"
	// VerbPromote has a variation get all requests: the canary is promoted, or the run ends.
	VerbPromote Verb = "Promote"
	// VerbRollback ends the run, and remembers its revision as bad.
	VerbRollback Verb = "Rollback"
	// VerbRetry measures a failed stage again, asks again for a work that was not done, or makes a new run of
	// a revision that was rolled back.
	VerbRetry Verb = "Retry"
)

// Control is a request of a person. It names run and stage, so that a copy of it does nothing later.
type Control struct {
	Verb Verb
	Run  int64
	// Stage that the request is about: the one under way, or of Advance the one to go on to. 0 is the next
	// one of Advance, and the one under way otherwise.
	Stage     int
	Variation string
	// Attempt tells requests apart that are the same otherwise.
	Attempt     int32
	RequestedBy string
	Reason      string
}

// Handled is a request that was answered.
type Handled struct {
	Control
	// Refusal says why it did nothing; empty if it was carried out.
	Refusal string
}

// obey carries a request out that was not answered yet.
func (m *machine) obey() {
	c := m.Control
	if c == nil || c.Verb == "" || m.next.Handled != nil && m.next.Handled.Control == *c {
		return
	}
	refusal := m.carryOut(*c)
	m.next.Handled = &Handled{*c, refusal}
	if refusal != "" {
		m.tell(VerbAnswered, true, "%s by %s had no effect: %s", c.Verb, c.RequestedBy, refusal)
		return
	}
	m.tell(VerbAnswered, false, "%s by %s", c.Verb, c.RequestedBy)
}

// carryOut returns why a request does nothing; empty if it was carried out. A request that waits for
// capacity or for a pause is refused, so that it does not act at a time that no person expects.
func (m *machine) carryOut(c Control) string {
	run := m.next.Run
	switch {
	case run == nil:
		return "there is no run"
	case c.Run != run.Number:
		return fmt.Sprintf("it names run %d, and this is run %d", c.Run, run.Number)
	case run.State.Ended() && c.Verb != VerbRetry:
		return fmt.Sprintf("run %d has ended: %s", run.Number, run.State)
	case !run.ReturnTime.IsZero():
		return fmt.Sprintf("all requests return to %s already, and %s has the change: undo the change there", run.Active, m.baseline())
	}
	if refusal := refuseAuthor(run, m.Approval, c); refusal != "" {
		return refusal
	}
	switch c.Verb {
	case VerbStart:
		return m.startByPerson()
	case VerbAdvance:
		return m.advanceByPerson(c)
	case VerbApprove:
		return m.approve(c)
	case VerbSkip:
		return m.skip(c)
	case VerbPromote:
		return m.promoteByPerson(c)
	case VerbRollback:
		m.reject(EndRequested)
		m.end(RolledBack, EndRequested, "asked for by "+c.RequestedBy)
		return ""
	case VerbRetry:
		return m.retry(c)
	}
	return fmt.Sprintf("%q is no verb", c.Verb)
}

func (m *machine) startByPerson() string {
	if m.next.Run.State != Created {
		return "the run has started already"
	}
	return m.refuseUnless(m.deployNow())
}

// refuseUnless returns what keeps a run from going forward.
func (m *machine) refuseUnless(moved bool) string {
	if m.next.Run.State.Ended() {
		return m.next.Run.EndMessage
	}
	if moved || m.wait == nil {
		return ""
	}
	return string(m.wait.Reason) + ": " + m.wait.Message
}

// stageUnderWay is the index of the stage that a request is about; the text says why there is none.
func (m *machine) stageUnderWay(c Control) (int, string) {
	i := m.next.Run.current()
	switch {
	case m.next.Run.State != Running || i < 0:
		return 0, "no stage is under way: the run is " + string(m.next.Run.State)
	case c.Stage != 0 && c.Stage != i+1:
		return 0, fmt.Sprintf("it names stage %d, and stage %d is under way", c.Stage, i+1)
	}
	return i, ""
}

func (m *machine) advanceByPerson(c Control) string {
	to := c.Stage - 1
	c.Stage = 0
	from, refusal := m.stageUnderWay(c)
	switch {
	case refusal != "":
		return refusal
	case to < 0:
		to = from + 1
	case to <= from:
		return fmt.Sprintf("stage %d is not behind stage %d: a run goes forward alone; ask for a rollback", to+1, from+1)
	}
	if to >= len(m.next.Run.Stages) {
		return fmt.Sprintf("there are %d stages: ask for a promotion", len(m.next.Run.Stages))
	}
	if i := m.next.Run.unapproved(from, to); i >= 0 {
		return fmt.Sprintf("stage %d needs an approval and has no approval: approve it (kubectl plumbline release approve), or skip it with the permission to skip", i+1)
	}
	return m.refuseUnless(m.advance(from, to))
}

// unapproved returns the index of the first stage from one up to another that wants an approval and has none; -1 if
// none does.
func (r *Run) unapproved(from, to int) int {
	for i := from; i < to; i++ {
		if r.Stages[i].RequireApproval && r.Stages[i].ApprovedBy == "" {
			return i
		}
	}
	return -1
}

func (m *machine) approve(c Control) string {
	i, refusal := m.stageUnderWay(c)
	if refusal != "" {
		return refusal
	}
	stage := &m.next.Run.Stages[i]
	switch {
	case !stage.RequireApproval:
		return fmt.Sprintf("stage %d needs no approval", i+1)
	case stage.ApprovedBy != "":
		return fmt.Sprintf("stage %d is approved already, by %s", i+1, stage.ApprovedBy)
	}
	stage.ApprovedBy = c.RequestedBy
	return ""
}

func (m *machine) skip(c Control) string {
	if m.next.IsChecking() && c.Stage == 0 {
		return m.skipCheck()
	}
	i, refusal := m.stageUnderWay(c)
	if refusal != "" {
		return refusal
	}
	return m.refuseUnless(m.advance(i, i+1))
}

func (m *machine) promoteByPerson(c Control) string {
	run := m.next.Run
	switch c.Variation {
	case run.Active:
		m.end(RolledBack, EndActivePromoted, "asked for by "+c.RequestedBy)
		return ""
	case run.Canary:
	default:
		return fmt.Sprintf("%q is no variation of the run", c.Variation)
	}
	from, refusal := m.stageUnderWay(Control{})
	if refusal != "" {
		return refusal
	}
	return m.refuseUnless(m.advance(from, len(run.Stages)))
}

// retry measures a failed stage again, asks again for a work that was not done, or begins a run with the
// revision of the last one.
func (m *machine) retry(c Control) string {
	run := m.next.Run
	if i := run.current(); !run.State.Ended() && m.next.isRefused() && (i < 0 || run.Stages[i].State != StageFailed) {
		return m.retryWork()
	}
	if w := m.next.lastWork(); w != nil && m.next.owesGroups() {
		if !w.Phase.settled() {
			return "the groups do not have their replicas back yet: work " + fmt.Sprint(w.Number) + " is " + string(w.Phase)
		}
		return m.retryReturn()
	}
	if run.State == Running {
		i, refusal := m.stageUnderWay(c)
		if refusal != "" {
			return refusal
		}
		stage := &run.Stages[i]
		if stage.State != StageFailed {
			return fmt.Sprintf("stage %d has not failed", i+1)
		}
		m.forgive(run.Canary, run.To)
		short := stage.ShortSince
		*stage = StageStatus{Stage: stage.Stage, State: StageRunning, ShiftTime: m.Now, Restarts: stage.Restarts + 1, Required: run.sizedBy(stage.Weight)}
		if !short.IsZero() { // the canary lacks pods still, and has time to get them
			stage.ShortSince = m.Now
		}
		if d := run.Division; d != nil && !d.ShortSince.IsZero() {
			d.ShortSince = m.Now
		}
		return ""
	}
	canary, is := m.arm(m.canary())
	switch {
	case run.State != RolledBack:
		return fmt.Sprintf("run %d has not failed: it is %s", run.Number, run.State)
	case !is:
		return "the revision of " + m.canary() + " is not known"
	}
	m.forgive(m.canary(), canary.Revision)
	delete(m.next.Seen, m.canary())
	return ""
}

// forgive forgets that a revision was rejected.
func (m *machine) forgive(variation string, revision Revision) {
	var kept []Rejected
	for _, r := range m.next.Rejected {
		if r.Variation != variation || !r.Is(revision) {
			kept = append(kept, r)
		}
	}
	m.next.Rejected = kept
}
