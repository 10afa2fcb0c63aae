// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// EventType is what happened to a plan, to the run of a release, or to guarded objects.
type EventType string

// What people are told about.
const (
	PlanCreated   EventType = "PlanCreated"
	PlanStarted   EventType = "PlanStarted"
	PlanCompleted EventType = "PlanCompleted"
	PlanFailed    EventType = "PlanFailed"
	// PlanEscalated: Plumbline will not act by itself, a person has to.
	PlanEscalated EventType = "PlanEscalated"
	// PlanIneffective: a step of a plan was written, and did not help, or was undone.
	PlanIneffective EventType = "PlanIneffective"
)

// ErrUnknownEvent is what a renderer answers to a type that it does not know.
var ErrUnknownEvent = errors.New("unknown type of event")

// wire is the spelling in payloads, "" for an unknown type.
func (t EventType) wire() string {
	switch t {
	case PlanCreated:
		return "plan.created"
	case PlanStarted:
		return "plan.started"
	case PlanCompleted:
		return "plan.completed"
	case PlanFailed:
		return "plan.failed"
	case PlanEscalated:
		return "plan.escalated"
	case PlanIneffective:
		return "plan.ineffective"
	case DriftDetected, DriftResolved:
		return t.driftWire()
	default:
		return t.releaseWire()
	}
}

// Known says that the renderers know the type.
func (t EventType) Known() bool { return t.wire() != "" }

// Urgent events ask a person to act; they are the last to be dropped.
func (t EventType) Urgent() bool {
	switch t {
	case PlanFailed, PlanEscalated, PlanIneffective, StageFailed, RunRolledBack, RunOverdue, RunWaiting:
		return true
	case PlanCreated, PlanStarted, PlanCompleted, RunStarted, StageAdvanced, RunPromoted, DriftDetected, DriftResolved:
		return false
	}
	return false
}

// PlanRef names the RemediationPlan.
type PlanRef struct {
	Namespace, Name, UID string
}

// Counts of a plan's targets.
type Counts struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
}

// Target is one object of the plan; Reason says what became of it, or why it is
// in the plan.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason,omitempty"`
}

// Record names a signed record of evidence. A receiver that keeps events has the digests of
// records where the writer of the records cannot change them.
type Record struct {
	// Chain is the uid of the policy.
	Chain    string `json:"chain"`
	Sequence int64  `json:"sequence"`
	Digest   string `json:"digest"`
}

// Event is one thing that happened to a plan, to a release, or to guarded objects. Strings may hold anything: what is
// rendered is Bounded.
type Event struct {
	Type EventType
	// Transition tells events of one type of one plan apart, such as a second
	// start after a pause. Empty where there can only be one.
	Transition string
	Plan       PlanRef
	// Release is set in events about a release, which have no plan; nil in all others.
	Release *ReleaseRef
	// Guard is set in events about drift, which have no plan; nil in all others.
	Guard       *GuardRef
	Policy      string
	Environment string
	// Severity is the worst of the targets, empty when there is none.
	Severity v1alpha1.SeverityLevel
	Counts   Counts
	// Targets are the first ones; Counts.Total says how many there are.
	Targets []Target
	// Reason says why a plan failed, was escalated, or waits.
	Reason string
	// Waiting says that the plan does not begin before a person executes it.
	Waiting       bool
	InitiatedBy   string
	CorrelationID string
	// Evidence is the record of the last decision about the plan; nil before the first one.
	Evidence *Record
	// Time is when it happened, not when it is told.
	Time time.Time
	// Link opens the plan in a browser. One that is not plain https is left out.
	Link string
}

// Bounds of what is told, in runes; Targets in number.
const (
	MaxTargets     = 10
	maxKind        = 63
	maxNamespace   = 63
	maxName        = 253
	maxUID         = 64
	maxTransition  = 128
	maxUser        = 256
	maxCorrelation = 128
	maxDigest      = 128
	maxReason      = 500
	maxItemReason  = 200
	maxLevel       = 16
	maxLink        = 1024
)

// ID is the same for the same happening, whoever tells it and however often, so
// that retries and restarts can be recognized: receivers get it as webhook-id,
// as the id of the CloudEvent, and in the Message-ID. It is "evt_" and 32
// hexadecimal digits: 128 bits of the SHA-256 of the uid of the plan, release or guard, the type and the
// transition, each preceded by its length so that no two triples collide by
// concatenation. It holds no full stop, as Standard Webhooks 1.0.0 asks.
func (e Event) ID() string {
	b := e.Bounded()
	h := sha256.New()
	for _, part := range []string{b.uid(), string(b.Type), b.Transition} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return "evt_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// uid is that of the object that the event is about.
func (e Event) uid() string {
	switch {
	case e.Release != nil:
		return e.Release.UID
	case e.Guard != nil:
		return e.Guard.UID + "/" + e.Guard.ObjectNamespace
	}
	return e.Plan.UID
}

// Bounded is the event with clean, short strings and at most MaxTargets targets,
// which it shares with nobody. It is what all renderers write.
func (e Event) Bounded() Event {
	e.Transition = clean(e.Transition, maxTransition)
	e.Plan = PlanRef{
		Namespace: clean(e.Plan.Namespace, maxNamespace),
		Name:      clean(e.Plan.Name, maxName),
		UID:       clean(e.Plan.UID, maxUID),
	}
	e.Release = e.Release.bounded()
	if e.Release == nil && e.Type.releaseWire() != "" {
		e.Release = &ReleaseRef{}
	}
	e.Guard = e.Guard.bounded()
	if e.Guard == nil && e.Type.driftWire() != "" {
		e.Guard = &GuardRef{}
	}
	e.Policy = clean(e.Policy, maxName)
	e.Environment = clean(e.Environment, maxName)
	e.Severity = v1alpha1.SeverityLevel(clean(string(e.Severity), maxLevel))
	e.Reason = clean(e.Reason, maxReason)
	e.InitiatedBy = clean(e.InitiatedBy, maxUser)
	e.CorrelationID = clean(e.CorrelationID, maxCorrelation)
	if r := e.Evidence; r != nil {
		e.Evidence = &Record{Chain: clean(r.Chain, maxUID), Sequence: max(r.Sequence, 0), Digest: clean(r.Digest, maxDigest)}
	}
	e.Link = safeLink(e.Link)
	e.Counts = e.Counts.plausible(len(e.Targets))
	targets := make([]Target, min(len(e.Targets), MaxTargets))
	for i := range targets {
		t := e.Targets[i]
		targets[i] = Target{
			Kind:      clean(t.Kind, maxKind),
			Namespace: clean(t.Namespace, maxNamespace),
			Name:      clean(t.Name, maxName),
			Reason:    clean(t.Reason, maxItemReason),
		}
	}
	e.Targets = targets
	return e
}

// plausible counts are not negative, and not below what is listed.
func (c Counts) plausible(listed int) Counts {
	return Counts{Total: max(c.Total, listed), Succeeded: max(c.Succeeded, 0), Failed: max(c.Failed, 0), Skipped: max(c.Skipped, 0)}
}

// omitted is how many targets are not listed.
func (e Event) omitted() int { return max(0, e.Counts.Total-len(e.Targets)) }
