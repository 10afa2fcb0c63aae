// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

const (
	// mostPlans is how many plans a policy makes within a minute at most.
	mostPlans = 20
	// retryTolerance is by how much a back-off may be too short: the end of a plan is stored in
	// whole seconds, and the API server's time is known to about a second.
	retryTolerance = 3 * time.Second
	// lastRetry is the longest back-off.
	lastRetry = 10 * time.Minute
)

// making of a plan by a planner.
type making struct {
	at time.Time
	// held says that the network held the request until another life planned.
	held bool
	plan *v1alpha1.RemediationPlan
}

// planned looks at a plan that a planner made: I27 to I30.
func (j *judge) planned(c apiserver.Commit, p *v1alpha1.RemediationPlan) {
	if c.User != Assessor {
		return
	}
	j.seen["plan that a planner makes"]++
	m := making{c.At, j.held(c), p}
	if len(p.Spec.Plan.Targets) > 1 {
		j.seen["plan of a planner with several targets"]++
	}
	if m.held {
		j.seen["plan that the network held until another planner began"]++
	}
	j.apart(c, m)
	j.rare(c, m)
	j.backsOff(c, m)
	j.wanted(c, p)
	j.made = append(j.made, m)
}

// held says that a creation was stored only when another life of the planner had begun. No
// process can call a request back, and the real lease lasts for longer than a request.
func (j *judge) held(c apiserver.Commit) bool {
	i := slices.IndexFunc(j.w.begun, func(b beginningOf) bool { return b.client == c.Client })
	return i >= 0 && i+1 < len(j.w.begun) && !j.w.begun[i+1].at.After(c.At)
}

// live says that a plan is there and has not ended.
func (j *judge) live(p *v1alpha1.RemediationPlan) bool {
	now := j.plans[p.Name]
	return !j.erased[string(p.UID)] && now != nil && now.UID == p.UID && !protocol.Final(now.Status.Phase)
}

// apart: I27. The claims (I12) hold whatever planners do: of two plans with one target, one waits.
// This is about what a planner may make at all.
func (j *judge) apart(c apiserver.Commit, m making) {
	for _, other := range j.made {
		if m.held || other.held || !j.live(other.plan) || other.plan.Spec.Plan.Policy.UID != m.plan.Spec.Plan.Policy.UID {
			continue
		}
		for i := range m.plan.Spec.Plan.Targets {
			if name := m.plan.Spec.Plan.Targets[i].BaselineName; targetIn(other.plan, name) >= 0 {
				j.breaks("I27", c.Revision, "plan %s is made with %s, which plan %s has", m.plan.Name, name, other.plan.Name)
			}
		}
	}
}

// targetIn is the index of a target in a plan; -1 when the plan does not have it.
func targetIn(p *v1alpha1.RemediationPlan, baseline string) int {
	return slices.IndexFunc(p.Spec.Plan.Targets, func(t v1alpha1.PlanTarget) bool { return t.BaselineName == baseline })
}

// rare: I28. Plans that were deleted do not count, since the planner cannot know of them.
func (j *judge) rare(c apiserver.Commit, m making) {
	recent := 1
	for _, other := range j.made {
		if !other.held && !j.erased[string(other.plan.UID)] && m.at.Sub(other.at) < time.Minute-tolerance {
			recent++
		}
	}
	if recent > mostPlans/2 {
		j.seen["minute of many plans"]++
	}
	if !m.held && recent > mostPlans {
		j.breaks("I28", c.Revision, "plan %s is the %dth within a minute", m.plan.Name, recent)
	}
}

// backsOff: I29. After each plan for an object that ended without success, the next one comes a
// second later, and twice as late after each further plan, until one succeeds.
func (j *judge) backsOff(c apiserver.Commit, m making) {
	for i := range m.plan.Spec.Plan.Targets {
		name := m.plan.Spec.Plan.Targets[i].BaselineName
		row, ended := j.row(m.plan, name)
		if row == 0 {
			continue
		}
		j.seen["plan after one without success"]++
		wait := min(lastRetry, time.Second<<min(row-1, 20))
		if wait > retryTolerance {
			j.seen["plan after a back-off that is judged"]++
		}
		if until := ended.Add(wait - retryTolerance); !m.held && m.at.Before(until) {
			j.breaks("I29", c.Revision, "plan %s for %s is made %s after the last of %d plans without success, and has to wait for %s", m.plan.Name, name, m.at.Sub(ended), row, wait)
		}
	}
}

// row counts the plans for an object that ended without success since the last success, by the
// policy as it was for a plan, and says when the last of them ended.
func (j *judge) row(of *v1alpha1.RemediationPlan, baseline string) (row int, ended time.Time) {
	for _, p := range j.endedFor(of.Spec.Plan.Policy.Digest, baseline) {
		if row, ended = row+1, p.Status.CompletionTime.Time; achieves(p, targetIn(p, baseline)) {
			row = 0
		}
	}
	return row, ended
}

// endedFor are the plans for an object that have ended, by one digest of the policy, in the order
// of their ends; of two that ended in one second the one that succeeded counts as the later one.
func (j *judge) endedFor(digest, baseline string) []*v1alpha1.RemediationPlan {
	var ended []*v1alpha1.RemediationPlan
	for _, name := range planNames(j.plans) {
		p := j.plans[name]
		if !j.deleted[name] && protocol.Final(p.Status.Phase) && p.Status.CompletionTime != nil && p.Spec.Plan.Policy.Digest == digest && targetIn(p, baseline) >= 0 {
			ended = append(ended, p)
		}
	}
	slices.SortStableFunc(ended, func(a, b *v1alpha1.RemediationPlan) int {
		if by := a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time); by != 0 {
			return by
		}
		if achieves(b, targetIn(b, baseline)) {
			return -1
		}
		return 0
	})
	return ended
}

// achieves says that a step put its target back, or found it put back.
func achieves(p *v1alpha1.RemediationPlan, step int) bool {
	s := stepOf(p, step)
	return s.State == v1alpha1.StepVerified || s.State == v1alpha1.StepSkipped && s.Reason == v1alpha1.ReasonAlreadyDesired
}

func stepOf(p *v1alpha1.RemediationPlan, step int) v1alpha1.PlanStep {
	if step >= len(p.Status.Steps) {
		return v1alpha1.PlanStep{}
	}
	return p.Status.Steps[step]
}

// wanted: I30. The planner is behind, so what counts are the Baselines that it had seen when it
// made the plan. That nothing is put back by a plan that came too late is I15.
func (j *judge) wanted(c apiserver.Commit, p *v1alpha1.RemediationPlan) {
	revision, known := j.w.sights.of(p.Name, c.Sent)
	if !known {
		return
	}
	for i := range p.Spec.Plan.Targets {
		t := &p.Spec.Plan.Targets[i]
		b := j.baselineAt(t.BaselineName, revision)
		switch {
		case b == nil:
			j.breaks("I30", c.Revision, "plan %s is made for %s, of which its planner had seen no Baseline", p.Name, t.BaselineName)
		case b.Spec.Accept != nil && b.Spec.Accept.Hash == t.DriftedHash:
			j.breaks("I30", c.Revision, "plan %s is made for a drift of %s that its planner had seen accepted", p.Name, t.BaselineName)
		case b.Spec.Authorized == nil, b.Spec.Authorized.Hash == t.DriftedHash:
			j.breaks("I30", c.Revision, "plan %s is made for a state of %s that its planner had seen authorized", p.Name, t.BaselineName)
		case t.Action != v1alpha1.ActionRollback && b.Spec.Authorized.Hash != t.RevisionHash:
			j.breaks("I30", c.Revision, "plan %s leads %s to a state, and its planner had seen another one authorized", p.Name, t.BaselineName)
		}
	}
}

// baselineAt is a Baseline as it was at a revision; nil when it was not there.
func (j *judge) baselineAt(name string, revision int64) *v1alpha1.Baseline {
	for _, c := range slices.Backward(j.history) {
		if c.Revision <= revision && c.Resource.Resource == "baselines" && c.Name == name {
			if c.After == nil {
				return nil
			}
			return typedOf[v1alpha1.Baseline](j.w, c.After)
		}
	}
	return nil
}
