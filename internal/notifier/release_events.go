// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"fmt"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// releaseTypes are the types of notifications by the lines of a release's history. The other lines are
// for people who look.
var releaseTypes = map[rollout.EventName]notify.EventType{
	rollout.RunStarted: notify.RunStarted, rollout.StageAdvanced: notify.StageAdvanced, rollout.StageHasFailed: notify.StageFailed,
	rollout.RunPromoted: notify.RunPromoted, rollout.RunRolledBack: notify.RunRolledBack, rollout.WaitOverdue: notify.RunOverdue,
}

// ReleaseEvents lists what people are told of a release: the lines of its history after a number and not
// older than a time, and the wait for a person. It returns the number of the last line as well.
func ReleaseEvents(r *v1alpha1.ABRelease, after int64, since time.Time) (events []notify.Event, last int64) {
	last = after
	in := r.Status.Rollout
	if in == nil {
		return nil, last
	}
	for i := range in.History {
		line := &in.History[i]
		last = max(last, line.Number)
		kind, told := releaseTypes[rollout.EventName(line.Event)]
		if !told || line.Number <= after || line.EventTime.Time.Before(since) || kind == notify.StageFailed && isRolledBack(in.History[i+1:], line) {
			continue
		}
		e := releaseEvent(r, kind, line.Run, line.EventTime.Time, line.Message)
		e.Transition, e.Release.TrafficPercentage = strconv.FormatInt(line.Number, 10), line.TrafficPercentage.String()
		events = append(events, e)
	}
	if w := in.Waiting; w != nil && in.Run != nil && waitsForPerson(rollout.WaitReason(w.Reason)) && !w.StartTime.Time.Before(since) {
		e := releaseEvent(r, notify.RunWaiting, in.Run.Number, w.StartTime.Time, w.Reason+": "+w.Message)
		e.Release.Stage = in.Stage
		e.Transition = fmt.Sprintf("%d %s %d", in.Run.Number, w.Reason, w.StartTime.Unix())
		events = append(events, e)
	}
	return events, last
}

// isRolledBack tells whether a failed stage is followed at once by the rollback, which says the same.
func isRolledBack(later []v1alpha1.RolloutEvent, failed *v1alpha1.RolloutEvent) bool {
	for i := range later {
		if l := &later[i]; l.Run == failed.Run && rollout.EventName(l.Event) == rollout.RunRolledBack && l.EventTime.Equal(&failed.EventTime) {
			return true
		}
	}
	return false
}

// waitsForPerson tells whether nothing but a person, or another revision, ends a wait. A failed stage that
// is held has been told as such.
func waitsForPerson(reason rollout.WaitReason) bool {
	switch reason {
	case rollout.WaitStart, rollout.WaitApproval, rollout.WaitAdvance, rollout.WaitUndecided, rollout.WaitBothBad, rollout.WaitRefusedWork, rollout.WaitBaseline, rollout.WaitTrust,
		rollout.WaitGroupScaled:
		return true
	case rollout.WaitDeployment, rollout.WaitCapacity, rollout.WaitFallback, rollout.WaitAcknowledgment, rollout.WaitTraffic, rollout.WaitMinimumTime,
		rollout.WaitDecision, rollout.WaitData, rollout.WaitProxyCounts, rollout.WaitPaused, rollout.WaitFailed, rollout.WaitRevision, rollout.WaitInvalid, rollout.WaitReturn, rollout.WaitGate, rollout.WaitCohortCheck,
		rollout.WaitWork, rollout.WaitBaselinePods, rollout.WaitControl:
		return false
	}
	return false
}

func releaseEvent(r *v1alpha1.ABRelease, kind notify.EventType, run int64, at time.Time, why string) notify.Event {
	return notify.Event{
		Type: kind, Reason: why, Time: at,
		Release: &notify.ReleaseRef{Namespace: r.Namespace, Name: r.Name, UID: string(r.UID), Service: r.Spec.ServiceName, Run: run},
	}
}

// WantsRelease tells whether an Environment asks for an event about a release to be told.
func WantsRelease(n *v1alpha1.ReleaseNotifications, kind notify.EventType) bool {
	if n == nil {
		return false
	}
	switch kind {
	case notify.RunStarted:
		return n.OnStarted == v1alpha1.Enabled
	case notify.StageAdvanced:
		return n.OnAdvanced == v1alpha1.Enabled
	case notify.RunPromoted:
		return n.OnPromoted == v1alpha1.Enabled
	case notify.StageFailed, notify.RunRolledBack:
		return n.OnFailed == v1alpha1.Enabled
	case notify.RunOverdue, notify.RunWaiting:
		return n.OnWaiting == v1alpha1.Enabled
	case notify.PlanCreated, notify.PlanStarted, notify.PlanCompleted, notify.PlanFailed, notify.PlanEscalated, notify.PlanIneffective,
		notify.DriftDetected, notify.DriftResolved:
		return false
	}
	return false
}
