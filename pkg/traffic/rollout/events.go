// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// EventName names what happened.
type EventName string

// The events. Those of the published design have its names.
const (
	RunCreated     EventName = "ab.created"
	RunStarted     EventName = "ab.started"
	StageAdvanced  EventName = "ab.stage_advanced"
	RunPromoted    EventName = "ab.promoted"
	RunRolledBack  EventName = "ab.rolled_back"
	StageStarted   EventName = "canary.stage_started"
	StagePassed    EventName = "canary.stage_passed"
	StageHasFailed EventName = "canary.stage_failed"

	MeasurementVoided  EventName = "canary.measurement_voided"
	WaitOverdue        EventName = "ab.overdue"
	VerbAnswered       EventName = "ab.verb_answered"
	RequestsReturned   EventName = "ab.requests_returned"
	WorkNotDone        EventName = "ab.work_not_done"
	CohortCheckStarted EventName = "canary.cohort_check_started"
	CohortCheckEnded   EventName = "canary.cohort_check_ended"
	BaselineUpdated    EventName = "ab.baseline_updated"
	ChangeQueued       EventName = "ab.change_queued"
	MinimumHeld        EventName = "ab.min_replicas_held"
	MinimumPutBack     EventName = "ab.min_replicas_put_back"
	ControlEnded       EventName = "canary.control_ended"
)

// Event is something that people are told.
type Event struct {
	Name    EventName
	Message string
	Warning bool
	Run     int64
	// Number is its place in the history.
	Number int64
}

// tell adds an event, and a line of the history.
func (m *machine) tell(name EventName, warning bool, format string, args ...any) {
	number, run := int64(1), int64(0)
	if n := len(m.next.History); n > 0 {
		number = m.next.History[n-1].Number + 1
	}
	if m.next.Run != nil {
		run = m.next.Run.Number
	}
	e := Event{name, fmt.Sprintf(format, args...), warning, run, number}
	m.events = append(m.events, e)
	m.next.History = append(m.next.History, Entry{number, m.Now, run, name, m.next.Weight(), e.Message})
	if extra := len(m.next.History) - MaxHistory; extra > 0 {
		m.next.History = m.next.History[extra:]
	}
}

// stageNumber finds the number in the words of the events of stages.
var stageNumber = regexp.MustCompile(`^(?:Starting canary stage|stage|Stage) ([1-9][0-9]?)\b`)

// StageOf returns the number of the stage that a line of the history is about. The words of the line have it;
// it is 0 for an event that is about no stage.
func StageOf(event EventName, message string) int32 {
	if event != StageStarted && event != StagePassed && event != StageHasFailed {
		return 0
	}
	found := stageNumber.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	number, _ := strconv.ParseInt(found[1], 10, 32) // two digits
	return int32(number)
}

func percent(w traffic.Weight) string { return w.Percent() }
