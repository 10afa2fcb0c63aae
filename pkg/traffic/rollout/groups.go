// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// Groups describe a release whose runs divide the replicas of two Deployments. The groups have the weight of a
// stage when they have its replicas.
type Groups struct {
	// Deployments by variation.
	Deployments map[string]string
	// Routed says that runs divide requests as well. Without that no proxy takes part, and the arms of the facts
	// are the groups.
	Routed bool
	// Arms are the groups of a release that is Routed; one that is missing is not known. The arms of the facts
	// are then those that serve requests, with the revisions of [JoinArms].
	Arms map[string]Arm
}

// Division is how a run divides the replicas of two groups.
type Division struct {
	// Total is how many replicas both groups had together when the run started; 0 before.
	Total int
	// Active and Canary are the replicas that the run has given the groups, or found there.
	Active, Canary int
	// Routed says that proxies divide requests by the same weight.
	Routed bool
	// ShortSince is since when the group of the canary has fewer ready pods than the stage gives it, of a run that
	// is Routed. That of another run is in the stage.
	ShortSince time.Time
	// SettleTime is when the groups had the sizes that the end of the run gives them.
	SettleTime time.Time
}

// sizes returns the replicas of both groups for the weight of the canary. The sum is always the total.
func (d *Division) sizes(weight traffic.Weight) (active, canary int) {
	if weight > 0 {
		rounded := (int(weight)*d.Total + int(traffic.Total)/2) / int(traffic.Total)
		canary = min(d.Total, max(1, rounded))
	}
	return d.Total - canary, canary
}

// divides names for people what a run divides.
func (r *Run) divides() string {
	switch {
	case r.Division == nil:
		return "requests"
	case r.hasRequests():
		return "requests and replicas"
	}
	return "replicas"
}

// give notes what a work has given a group.
func (r *Run) give(variation string, replicas int) {
	switch {
	case r.Division == nil:
	case variation == r.Active:
		r.Division.Active = replicas
	case variation == r.Canary:
		r.Division.Canary = replicas
	}
}

// hasReplicas takes the sizes of the groups when the run starts; it waits while there is nothing to divide.
func (m *machine) hasReplicas() bool {
	run := m.next.Run
	if run.Division == nil {
		return true
	}
	active, isActive := m.groupArm(run.Active)
	canary, isCanary := m.groupArm(run.Canary)
	total := active.Replicas + canary.Replicas
	if !isActive || !isCanary || total < 1 || total > maxReplicas {
		m.waitTold(WaitCapacity, m.deadlines().Deployment, "both groups to have 1 to %d replicas together: Deployment %s has %d, and Deployment %s has %d",
			maxReplicas, m.group(run.Active), active.Replicas, m.group(run.Canary), canary.Replicas)
		return false
	}
	*run.Division = Division{Total: total, Active: active.Replicas, Canary: canary.Replicas, Routed: run.Division.Routed}
	return true
}

// isGrown tells whether the canary was given its replicas for a weight; it asks for them and waits otherwise.
// Before the first stage a group that is too large shrinks once the other one is ready, and later no canary
// shrinks.
func (m *machine) isGrown(weight traffic.Weight) bool {
	run := m.next.Run
	d := run.Division
	active, canary := d.sizes(weight)
	isFirst := run.State == Deploying
	switch {
	case !m.isIdle(), !m.areGroupsKnown(), m.isScaledByAnother():
		return false
	case isFirst && d.Active < active:
		return m.resize(run.Active, active)
	case isFirst && d.Canary > canary && !m.isReady(run.Active, active):
		return false
	case d.Canary < canary || isFirst && d.Canary > canary:
		return m.resize(run.Canary, canary)
	}
	return true
}

// isDivided tells whether the groups have what the state of the run gives them; it asks for that and waits
// otherwise.
func (m *machine) isDivided() bool {
	switch m.next.Run.State {
	case Created, Deploying:
		return true
	case Running, Promoting:
		return m.isShifted(m.next.Weight())
	case Completed, RolledBack:
		return m.isGivenBack()
	}
	return true
}

// isShifted tells whether the active group has no more replicas than a weight leaves it. It is scaled down once
// the canary is ready, so both groups together never have fewer replicas than before the run.
func (m *machine) isShifted(weight traffic.Weight) bool {
	run := m.next.Run
	active, canary := run.Division.sizes(weight)
	switch {
	case !m.isIdle(), !m.areGroupsKnown(), m.isScaledByAnother():
		return false
	case run.Division.Active <= active:
		return true
	case !m.isReady(run.Canary, canary):
		return false
	}
	return m.resize(run.Active, active)
}

// isGivenBack tells whether the active group has all replicas after a run, and the canary none.
func (m *machine) isGivenBack() bool {
	d, last := m.next.Run.Division, m.next.lastWork()
	switch {
	case !d.SettleTime.IsZero():
		return true
	case d.Total == 0 || last == nil && !m.next.Run.hasBegun(): // the groups are as the run has found them
	case last != nil && !last.Phase.settled():
		m.waitWork(last)
		return false
	case !m.giveGroupsBack(last):
		return false
	}
	d.SettleTime = m.Now
	return true
}

// giveGroupsBack asks for what the end of a run gives the groups, and tells whether that is done. Each group is
// scaled once: another writer who scales it afterwards has the last word.
func (m *machine) giveGroupsBack(last *Work) bool {
	run, total := m.next.Run, m.next.Run.Division.Total
	active, isActive := m.groupArms()[run.Active]
	canary, isCanary := m.groupArms()[run.Canary]
	isForActive, isForCanary := last.gives(run.Active, total), last.gives(run.Canary, 0)
	switch {
	case !isActive || !isCanary:
		m.waitTold(WaitCapacity, m.deadlines().Deployment, "the Deployments of both groups to be read")
		return false
	case canary.Replicas == 0 && active.Replicas >= total:
		return true
	case (isForActive || isForCanary) && last.Phase != WorkSucceeded:
		m.hold(WaitRefusedWork, "work %d, %s to %d, is %s: %s; scale Deployment %s to %d and then Deployment %s to 0 by hand, or ask for Retry",
			last.Number, last.Verb, last.Replicas, last.Phase, last.Message, m.group(run.Active), total, m.group(run.Canary))
		return false
	case isForCanary:
		return true
	case active.Replicas < total && isForActive:
		m.waitTold(WaitGroupScaled, m.deadlines().Deployment, "another writer has scaled Deployment %s to %d, and all work needs %d: scale it up, or ask for Retry", m.group(run.Active), active.Replicas, total)
		return false
	case active.Replicas < total:
		return m.resize(run.Active, total)
	case !m.isReady(run.Active, total):
		return false
	}
	return m.resize(run.Canary, 0)
}

// hasBegun tells whether a stage of the run has begun.
func (r *Run) hasBegun() bool { return !r.Stages[0].ShiftTime.IsZero() }

// gives tells whether a work, which may be nil, gives a group so many replicas.
func (w *Work) gives(variation string, replicas int) bool {
	return w != nil && w.Verb == ScaleClone && w.Variation == variation && w.Replicas == replicas
}

// owesGroups tells whether the groups do not have yet what the end of the last run gives them.
func (s *State) owesGroups() bool {
	return s.Run != nil && s.Run.State.Ended() && s.Run.Division != nil && s.Run.Division.SettleTime.IsZero()
}

// OwesGroups tells whether a run has groups scaled, or is to give replicas back.
func (s State) OwesGroups() bool {
	return s.IsOn() && s.Run.Division != nil || s.owesGroups()
}

// retryReturn asks once more for what the end of a run gives the groups.
func (m *machine) retryReturn() string {
	run := m.next.Run
	if active, is := m.groupArm(run.Active); is && active.Replicas >= run.Division.Total {
		m.askFor(ScaleClone, run.Canary, 0)
		return ""
	}
	m.askFor(ScaleClone, run.Active, run.Division.Total)
	return ""
}

// isScaledByAnother tells whether a group has other replicas than the run gave it; it waits for a person then.
// What a work under way writes says nothing.
func (m *machine) isScaledByAnother() bool {
	run := m.next.Run
	for _, group := range []struct {
		variation string
		given     int
	}{{run.Active, run.Division.Active}, {run.Canary, run.Division.Canary}} {
		if arm, is := m.groupArm(group.variation); is && arm.Replicas != group.given {
			m.waitPerson(WaitGroupScaled, "a person to scale Deployment %s to %d again: another writer has scaled it to %d", m.group(group.variation), group.given, arm.Replicas)
			return true
		}
	}
	return false
}

// isReady tells whether a group has so many ready pods; it waits otherwise.
func (m *machine) isReady(variation string, wants int) bool {
	arm, is := m.groupArm(variation)
	if is && arm.Ready >= wants {
		return true
	}
	m.waitTold(WaitCapacity, m.deadlines().Deployment, "%s: %d ready, wants %d before the other group is scaled down", m.groupName(variation), arm.Ready, wants)
	return false
}

// resize asks for other replicas of a group, and waits; false.
func (m *machine) resize(variation string, replicas int) bool {
	m.askFor(ScaleClone, variation, replicas)
	m.waitWork(m.next.lastWork())
	return false
}

// inForceText says why a stage without a duration passes.
func (m *machine) inForceText() string {
	switch run := m.next.Run; {
	case run.Division == nil:
		return "its weight is acknowledged"
	case run.hasRequests():
		return "its weight is acknowledged, and the groups have its replicas"
	}
	return "the groups have its replicas"
}

// group names the Deployment of a variation for people.
func (m *machine) group(variation string) string {
	if m.Groups == nil || m.Groups.Deployments[variation] == "" {
		return "of " + variation
	}
	return m.Groups.Deployments[variation]
}

// GroupHealthOf is the verdict about the stage under way of a canary that is a group, or has one: no proxy counts
// anything of it, so restarts and readiness alone decide.
func GroupHealthOf(s State, arms map[string]Arm, now time.Time) Health {
	n := s.Current()
	if n == 0 || s.Run.Division == nil {
		return Health{}
	}
	stage, wants := &s.Run.Stages[n-1], s.Run.groupSize(s.Run.Stages[n-1].Weight)
	canary, is := arms[s.Run.Canary]
	since := s.Run.groupShortSince(stage)
	h := Health{Run: s.Run.Number, Stage: n, ShiftTime: stage.ShiftTime}
	switch short := now.Sub(since); {
	case !is:
		h.Verdict, h.Message = judge.NoData, "the Deployment of the canary could not be read"
	case canary.Revision.Hash == "":
		h.Verdict, h.Message = judge.Fail, "the Deployment of the canary does not exist"
	case canary.Restarted > 0:
		h.Verdict, h.Message = judge.Fail, fmt.Sprintf("%d of the canary's pods have restarted since the stage began", canary.Restarted)
	case !since.IsZero() && short >= judge.UnreadyLimit:
		h.Verdict, h.Message = judge.Fail, fmt.Sprintf("%d of %d pods are ready, since %s", canary.Ready, wants, since.UTC().Format(time.RFC3339))
	case canary.Ready < wants:
		h.Verdict, h.Message = judge.Undecided, fmt.Sprintf("%d of %d pods are ready", canary.Ready, wants)
	default:
		h.Verdict, h.Message = judge.Pass, fmt.Sprintf("%d of %d pods are ready, without a restart", canary.Ready, wants)
	}
	return h
}
