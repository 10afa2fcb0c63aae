// SPDX-License-Identifier: Apache-2.0

package events

import (
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// ofPlan follows the history of a plan. The place of an event is its line, and 0 is the creation.
func ofPlan(p *v1alpha1.RemediationPlan) []Entry {
	const first = 0
	targets := len(p.Spec.Plan.Targets)
	ended := 0
	made := wire.Event{Type: wire.EventPlanCreated, PlanID: string(p.UID), Status: string(wire.Spell(wire.PlanStatus(v1alpha1.PlanCreated)))}
	made.Progress = partOf(ended, targets)
	all := []Entry{entryOf(&p.ObjectMeta, strconv.Itoa(first), p.CreationTimestamp.Time, made)}
	for i := range p.Status.History {
		line := &p.Status.History[i]
		e := wire.Event{Type: wire.EventType(line.Event), PlanID: string(p.UID)}
		if !e.Type.Known() {
			continue
		}
		if line.Step == nil {
			describePlan(&e, p)
		} else if !describeTarget(&e, p, *line.Step) {
			continue
		}
		if isEndOfTarget(line.Event) {
			ended++
		}
		e.Progress = partOf(ended, targets)
		all = append(all, entryOf(&p.ObjectMeta, strconv.Itoa(first+1+i), line.EventTime.Time, e))
	}
	return all
}

// describePlan says how the plan was: it has ended with its last event, and ran before.
func describePlan(e *wire.Event, p *v1alpha1.RemediationPlan) {
	e.Status = string(wire.Spell(wire.PlanStatus(v1alpha1.PlanRunning)))
	if string(e.Type) == string(protocol.EventPlanCompleted) {
		e.Status, e.Message = string(wire.PlanStatusOf(p)), p.Status.EndedReason
	}
}

// describeTarget says how a target was; false if the plan has no such target.
func describeTarget(e *wire.Event, p *v1alpha1.RemediationPlan, index int32) bool {
	step := wire.StepOf(p, index)
	if step == nil || index < 0 || int(index) >= len(p.Spec.Plan.Targets) {
		return false
	}
	e.TargetID, e.Status = wire.TargetIDOf(p, index), string(wire.Spell(wire.TargetRunning))
	if isEndOfTarget(string(e.Type)) {
		e.Status, e.Message = string(wire.TargetStatusOf(step)), step.Message
	}
	return true
}

func isEndOfTarget(event string) bool {
	return event == string(protocol.EventTargetCompleted) || event == string(protocol.EventTargetFailed)
}

// partOf is nil for a plan without targets.
func partOf(ended, targets int) *float64 {
	if targets == 0 {
		return nil
	}
	part := min(1, float64(ended)/float64(targets))
	return &part
}
