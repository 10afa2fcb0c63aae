// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
)

// Events about the run of a release. Those that the published design has have its names in payloads.
const (
	RunStarted    EventType = "RunStarted"
	StageAdvanced EventType = "StageAdvanced"
	StageFailed   EventType = "StageFailed"
	RunPromoted   EventType = "RunPromoted"
	RunRolledBack EventType = "RunRolledBack"
	// RunOverdue tells that a run waits for longer than it should.
	RunOverdue EventType = "RunOverdue"
	// RunWaiting tells that a run goes on when a person decides.
	RunWaiting EventType = "RunWaiting"
)

// releaseWire is the spelling of an event about a release in payloads; empty for another event.
func (t EventType) releaseWire() string {
	switch t {
	case RunStarted:
		return "ab.started"
	case StageAdvanced:
		return "ab.stage_advanced"
	case StageFailed:
		return "canary.stage_failed"
	case RunPromoted:
		return "ab.promoted"
	case RunRolledBack:
		return "ab.rolled_back"
	case RunOverdue:
		return "ab.overdue"
	case RunWaiting:
		return "ab.waiting"
	default:
		return ""
	}
}

// ReleaseRef names the ABRelease of an event, and the run that the event is about.
type ReleaseRef struct {
	Namespace, Name, UID string
	// Service is the Service whose requests the release divides.
	Service string
	// Run is the number of the run, from 1, and Stage that of its stage; 0 if none is under way.
	Run   int64
	Stage int32
	// TrafficPercentage is what the canary was to have, as a decimal number without a sign of percent.
	TrafficPercentage string
}

func (r *ReleaseRef) bounded() *ReleaseRef {
	if r == nil {
		return nil
	}
	return &ReleaseRef{
		Namespace: clean(r.Namespace, maxNamespace), Name: clean(r.Name, maxName), UID: clean(r.UID, maxUID),
		Service: clean(r.Service, maxName), Run: max(r.Run, 0), Stage: max(r.Stage, 0), TrafficPercentage: clean(r.TrafficPercentage, maxLevel),
	}
}

// releaseData is a release in payloads.
type releaseData struct {
	Namespace         string `json:"namespace"`
	Name              string `json:"name"`
	UID               string `json:"uid"`
	Service           string `json:"service,omitempty"`
	Run               int64  `json:"run,omitempty"`
	Stage             int32  `json:"stage,omitempty"`
	TrafficPercentage string `json:"trafficPercentage,omitempty"`
}

// releaseHeadline says in one sentence what happened to a run.
func releaseHeadline(e Event, q quote) string {
	run := fmt.Sprintf("Release %s: run %d", q(subjectName(e)), e.Release.Run)
	percent := e.Release.TrafficPercentage + " %"
	switch e.Type {
	case RunStarted:
		return run + " has started"
	case StageAdvanced:
		return run + " goes on: the canary gets " + q(percent)
	case StageFailed:
		return run + " failed a stage"
	case RunPromoted:
		return run + " is promoted: the canary gets all requests"
	case RunRolledBack:
		return run + " is rolled back"
	case RunOverdue:
		return run + " is overdue"
	case RunWaiting:
		return run + " waits for a person"
	default:
		return ""
	}
}
