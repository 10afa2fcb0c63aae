// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// EventType is the name of a sort of events.
type EventType string

// The types of events that the published designs have no name for. The last three are of the stream itself.
const (
	EventPlanCreated EventType = "plan.created"

	EventQuarantined     EventType = "drift.quarantined"
	EventQuarantineEnded EventType = "drift.quarantine_ended"

	EventPolicyCreated  EventType = "policy.created"
	EventPolicyReady    EventType = "policy.ready"
	EventPolicyNotReady EventType = "policy.not_ready"
	EventPolicyDegraded EventType = "policy.degraded"
	EventPolicyStalled  EventType = "policy.stalled"

	EventNarrowed EventType = "narrowed"
	EventResync   EventType = "resync"
	EventEnded    EventType = "ended"
)

// eventTypes are all types, those of the published designs first.
var eventTypes = []EventType{
	EventPlanCreated, "plan.started", "plan.completed", "target.started", "target.completed", "target.failed",
	"ab.created", "ab.started", "ab.stage_advanced", "ab.promoted", "ab.rolled_back",
	"canary.stage_started", "canary.stage_passed", "canary.stage_failed",

	"canary.measurement_voided", "canary.cohort_check_started", "canary.cohort_check_ended", "canary.control_ended",
	"ab.overdue", "ab.verb_answered", "ab.requests_returned", "ab.work_not_done", "ab.baseline_updated", "ab.change_queued",
	"ab.min_replicas_held", "ab.min_replicas_put_back",
	"drift.in_sync", "drift.drifted", "drift.missing", "drift.unknown", "drift.retired", "drift.not_guarded",
	EventQuarantined, EventQuarantineEnded,
	EventPolicyCreated, EventPolicyReady, EventPolicyNotReady, EventPolicyDegraded, EventPolicyStalled,
	EventNarrowed, EventResync, EventEnded,
}

// Known tells whether this version knows a type.
func (t EventType) Known() bool { return slices.Contains(eventTypes, t) }

// Schema lists the types for OpenAPI.
func (EventType) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, t := range eventTypes {
		s.Enum = append(s.Enum, string(t))
	}
	return s
}

// DriftEvent is the type of the event that a Baseline has come into a state.
func DriftEvent(state v1alpha1.DriftState) EventType { return EventType("drift." + Spell(state)) }

// EventsMayBeMissing is the message of a notice to read the objects again.
const EventsMayBeMissing = "events may be missing: read the objects again"

// Event is something that happened to an object, or to the stream of events itself.
type Event struct {
	ID          string    `json:"id,omitempty" doc:"The same at each replica and after each restart; absent for an event of the stream itself."`
	Type        EventType `json:"type"`
	Namespace   string    `json:"namespace,omitempty"`
	Name        string    `json:"name,omitempty" doc:"The name of the plan, the release, the Baseline or the policy."`
	PlanID      string    `json:"planId,omitempty"`
	TargetID    string    `json:"targetId,omitempty"`
	ReleaseID   string    `json:"releaseId,omitempty"`
	StageNumber int32     `json:"stageNumber,omitempty"`
	BaselineID  string    `json:"baselineId,omitempty"`
	PolicyID    string    `json:"policyId,omitempty"`
	Status      string    `json:"status" doc:"The status of the object that the event is about, as it was then."`
	Progress    *float64  `json:"progress,omitempty" minimum:"0" maximum:"1" doc:"The part of the targets of a plan that had ended."`
	Message     string    `json:"message,omitempty"`
	Code        int       `json:"code,omitempty" doc:"Why the stream ends: the code with which a WebSocket ends."`
	Timestamp   time.Time `json:"timestamp"`
}
