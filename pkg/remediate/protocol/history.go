// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// EventName is the name of an event of a plan, or of one of its targets, in the published design.
type EventName string

// The events. Of a plan that was created, the API server itself keeps the time.
const (
	EventPlanStarted     EventName = "plan.started"
	EventPlanCompleted   EventName = "plan.completed"
	EventTargetStarted   EventName = "target.started"
	EventTargetCompleted EventName = "target.completed"
	EventTargetFailed    EventName = "target.failed"
)

// ofPlan stands for the index of a target in an event of the plan itself.
const ofPlan int32 = -1

// line is an event, without its time.
type line struct {
	event EventName
	step  int32
}

// NoteEvents appends the events of a status that its history lacks to the history. Times of
// a status have whole seconds, and a step that is deferred gives its start back, so only the history
// has the order of the events, and each of them.
func NoteEvents(n *v1alpha1.RemediationPlanStatus) {
	told := map[line]bool{}
	for i := range n.History {
		told[lineOf(&n.History[i])] = true
	}
	note := func(event EventName, step int32, at *metav1.Time) {
		if at == nil || told[line{event, step}] {
			return
		}
		e := v1alpha1.PlanEvent{Event: string(event), EventTime: *at}
		if step != ofPlan {
			e.Step = &step
		}
		n.History = append(n.History, e)
	}
	note(EventPlanStarted, ofPlan, n.StartTime)
	for i := range n.Steps {
		step := &n.Steps[i]
		note(EventTargetStarted, step.Index, step.StartTime)
		if ended(step) {
			note(endOf(step.State), step.Index, step.CompletionTime)
		}
	}
	if Final(n.Phase) {
		note(EventPlanCompleted, ofPlan, n.CompletionTime)
	}
}

func lineOf(e *v1alpha1.PlanEvent) line {
	if e.Step == nil {
		return line{EventName(e.Event), ofPlan}
	}
	return line{EventName(e.Event), *e.Step}
}

func endOf(state v1alpha1.StepState) EventName {
	if state == v1alpha1.StepFailed {
		return EventTargetFailed
	}
	return EventTargetCompleted
}
