// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// tellRollbackFor is for how long webhooks are told of a rollback that they did not take.
const tellRollbackFor = time.Hour

// restarts counts the measurements of the run that began anew. Each of them asks all gates anew.
func (r *Run) restarts() int {
	n := 0
	for i := range r.Stages {
		n += r.Stages[i].Restarts
	}
	return n
}

// point of a run; the stage is its number, and 0 for an event that is about no stage.
func (r *Run) point(event gates.Event, stage int) gates.Point {
	return gates.Point{Run: r.Number, Event: event, Stage: stage, Restart: r.restarts()}
}

// pointAhead is the point before the stage of an index, or before the promotion behind the last stage.
func (r *Run) pointAhead(to int) gates.Point {
	if to >= len(r.Stages) {
		return r.point(gates.BeforePromotion, 0)
	}
	return r.point(gates.BeforeStage, to+1)
}

// gatesAt are the gates of a point. A stage without requests has no queries: nothing of the canary can be
// counted there.
func (r *Run) gatesAt(p gates.Point, webhooks []gates.Webhook) gates.Set {
	set := gates.Set{Queries: r.Strategy.Queries, Webhooks: webhooks}
	if p.Event == gates.DuringStage && r.Stages[p.Stage-1].Weight == 0 {
		set.Queries = nil
	}
	return set
}

// settleGates has the gates of the run follow the answers.
func (m *machine) settleGates() {
	run := m.next.Run
	if run == nil {
		m.next.Gates = nil
		return
	}
	m.next.Gates = gates.Settle(gates.Set{Queries: run.Strategy.Queries, Webhooks: m.Webhooks}, m.next.Gates, m.Answers, run.Number)
}

// judgeGates returns the verdict of the gates of an event.
func (m *machine) judgeGates(event gates.Event, stage int) gates.Verdict {
	return m.judgePoint(m.next.Run.point(event, stage))
}

// judgeAhead returns the verdict of the gates before the stage of an index, or before the promotion.
func (m *machine) judgeAhead(to int) gates.Verdict { return m.judgePoint(m.next.Run.pointAhead(to)) }

func (m *machine) judgePoint(p gates.Point) gates.Verdict {
	run := m.next.Run
	return gates.Judge(run.gatesAt(p, m.Webhooks), m.next.Gates, p, m.Now, gates.FreshFor(run.Strategy.Interval))
}

// isHeld tells whether gates keep a run from going past a point; it waits then.
func (m *machine) isHeld(v gates.Verdict) bool {
	if v.Result == gates.Pass {
		return false
	}
	m.waitTold(WaitGate, m.deadlines().Extension, "%s", v.Message)
	return true
}

// endByGate ends the run and remembers its revision as bad.
func (m *machine) endByGate(v gates.Verdict) bool {
	m.reject(EndGateFailed)
	m.end(RolledBack, EndGateFailed, v.Message)
	return true
}

// Questions lists the questions that the run has for gates now.
func (s State) Questions(webhooks []gates.Webhook, now time.Time) []gates.Question {
	var due []gates.Question
	for _, p := range s.points(now) {
		due = append(due, gates.Due(s.Run.gatesAt(p, webhooks), s.Gates, p)...)
	}
	return due
}

// points are the points that the run is at.
func (s State) points(now time.Time) []gates.Point {
	run := s.Run
	if run == nil {
		return nil
	}
	switch run.State {
	case Created:
		return []gates.Point{run.point(gates.BeforeStart, 0)}
	case Deploying:
		return []gates.Point{run.point(gates.BeforeStage, 1)}
	case Running:
		return s.pointsOfStage()
	case RolledBack:
		if now.Sub(run.EndTime) < tellRollbackFor {
			return []gates.Point{run.point(gates.AfterRollback, 0)}
		}
	case Promoting, Completed:
	}
	return nil
}

// pointsOfStage are that of the stage under way and, once the run can leave the stage, that ahead.
func (s State) pointsOfStage() []gates.Point {
	run := s.Run
	i := run.current()
	if i < 0 {
		return nil
	}
	var points []gates.Point
	stage := &run.Stages[i]
	if stage.State == StageRunning && !stage.StartTime.IsZero() {
		points = append(points, run.point(gates.DuringStage, i+1))
	}
	isUndecided := s.Waiting != nil && s.Waiting.Reason == WaitUndecided
	if !stage.PassTime.IsZero() || stage.State == StageFailed || isUndecided {
		return append(points, run.pointAhead(i+1))
	}
	if to := s.refusedTarget(i); to > i { // one point ahead at a time: a gate keeps one answer
		points = append(points, run.pointAhead(to))
	}
	return points
}

// refusedTarget is the index of the stage to which a person asked to go in vain, as a gate had not passed.
// The gate is asked from then on, so that the person can ask again. It is -1 if there is none.
func (s State) refusedTarget(from int) int {
	h := s.Handled
	if h == nil || h.Run != s.Run.Number || !strings.HasPrefix(h.Refusal, string(WaitGate)+":") {
		return -1
	}
	switch h.Verb {
	case VerbAdvance:
		if h.Stage > 0 {
			return h.Stage - 1
		}
		return from + 1
	case VerbSkip:
		return from + 1
	case VerbPromote:
		return len(s.Run.Stages)
	case VerbStart, VerbApprove, VerbRollback, VerbRetry:
	}
	return -1
}
