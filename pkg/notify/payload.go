// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"fmt"
	"time"
)

// eventData is what machines are told; the same in a webhook and a CloudEvent.
type eventData struct {
	ID             string       `json:"id"`
	Plan           *planData    `json:"plan,omitempty"`
	Release        *releaseData `json:"release,omitempty"`
	Guard          *guardData   `json:"guard,omitempty"`
	Policy         string       `json:"policy,omitempty"`
	Environment    string       `json:"environment,omitempty"`
	Severity       string       `json:"severity,omitempty"`
	Counts         *Counts      `json:"counts,omitempty"`
	Targets        []Target     `json:"targets,omitzero"`
	TargetsOmitted *int         `json:"targetsOmitted,omitempty"`
	Reason         string       `json:"reason,omitempty"`
	InitiatedBy    string       `json:"initiatedBy,omitempty"`
	CorrelationID  string       `json:"correlationId,omitempty"`
	Evidence       *Record      `json:"evidence,omitempty"`
	Link           string       `json:"link,omitempty"`
}

type planData struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// dataOf wants a bounded event.
func dataOf(e Event) eventData {
	data := eventData{
		ID:            e.ID(),
		Policy:        e.Policy,
		Environment:   e.Environment,
		Severity:      string(e.Severity),
		Reason:        e.Reason,
		InitiatedBy:   e.InitiatedBy,
		CorrelationID: e.CorrelationID,
		Evidence:      e.Evidence,
		Link:          e.Link,
	}
	if e.Release != nil {
		data.Release = new(releaseData(*e.Release))
		return data
	}
	data.Targets, data.TargetsOmitted = e.Targets, new(e.omitted())
	if e.Guard != nil {
		data.Guard = new(guardData(*e.Guard))
		return data
	}
	data.Plan, data.Counts = new(planData(e.Plan)), new(e.Counts)
	return data
}

// webhookPayload has the structure that Standard Webhooks 1.0.0 recommends.
type webhookPayload struct {
	Type      string    `json:"type"`
	Timestamp string    `json:"timestamp"`
	Data      eventData `json:"data"`
}

// WebhookPayload is the body of a generic webhook: type ("plan.failed"),
// timestamp (of the happening, RFC 3339) and data. ErrUnknownEvent is the only
// error.
func WebhookPayload(e Event) ([]byte, error) {
	e = e.Bounded()
	if !e.Type.Known() {
		return nil, fmt.Errorf("rendering a webhook: %w", ErrUnknownEvent)
	}
	return encode(webhookPayload{Type: e.Type.wire(), Timestamp: timestamp(e.Time), Data: dataOf(e)})
}

// cloudEvent is CloudEvents 1.0 in the structured mode of its JSON format. These
// lines are all that a sender needs of it; the official SDK would bring a logger
// and a second JSON library with it.
type cloudEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            string    `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            eventData `json:"data"`
}

// What a CloudEvent says of where it comes from.
const (
	// CloudEventContentType is the media type of the structured JSON mode.
	CloudEventContentType = "application/cloudevents+json; charset=utf-8"
	// DefaultSource names the producer when the channel names none.
	DefaultSource = "urn:plumbline:remediation"
	// releaseSource is that of events about releases, and driftSource of events about drift.
	releaseSource = "urn:plumbline:delivery"
	driftSource   = "urn:plumbline:guard"
	// The prefixes are the reverse DNS names that the specification asks for.
	cloudEventPrefix = "dev.plumbline.remediation."
	releasePrefix    = "dev.plumbline.delivery."
	driftPrefix      = "dev.plumbline.guard."
)

// CloudEvent is the event in the structured JSON mode of CloudEvents 1.0. Source
// and id together are unique: the id derives from the plan's uid. The message is
// below 64 KiB, which every intermediary forwards. ErrUnknownEvent is the only
// error.
func CloudEvent(e Event, c CloudEventsChannel) ([]byte, error) {
	e = e.Bounded()
	if !e.Type.Known() {
		return nil, fmt.Errorf("rendering a CloudEvent: %w", ErrUnknownEvent)
	}
	source, prefix := DefaultSource, cloudEventPrefix
	switch {
	case e.Release != nil:
		source, prefix = releaseSource, releasePrefix
	case e.Guard != nil:
		source, prefix = driftSource, driftPrefix
	}
	return encode(cloudEvent{
		SpecVersion:     "1.0",
		ID:              e.ID(),
		Source:          cmp.Or(c.Source, source),
		Type:            prefix + e.Type.wire(),
		Subject:         subjectName(e),
		Time:            timestamp(e.Time),
		DataContentType: "application/json",
		Data:            dataOf(e),
	})
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
