// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"fmt"
	"time"
)

// Kind says what a record is about.
type Kind string

// The kinds of records.
const (
	// KindStep: how one step ended, with its effect if it had one.
	KindStep Kind = "Step"
	// KindFence: a target was marked so that a write still under way conflicts.
	KindFence Kind = "Fence"
	// KindStandby: a Deployment was made that answers the requests of a target during its repair.
	KindStandby Kind = "Standby"
	// KindAssessment: the assessment of a step has ended, with a verdict on the effect of the step.
	KindAssessment Kind = "Assessment"
	// KindPlanCreated: a plan was made.
	KindPlanCreated Kind = "PlanCreated"
	// KindPlanDeferred: a plan has to wait; the reason says for what.
	KindPlanDeferred Kind = "PlanDeferred"
	// KindPlanApproved: somebody allowed it.
	KindPlanApproved Kind = "PlanApproved"
	// KindPlanPaused: no further step begins for now.
	KindPlanPaused Kind = "PlanPaused"
	// KindPlanResumed: the pause is over.
	KindPlanResumed Kind = "PlanResumed"
	// KindPlanCanceled: somebody ended it; nothing of it is written any more.
	KindPlanCanceled Kind = "PlanCanceled"
	// KindPlanHalted: it was stopped by a rule, such as an open breaker.
	KindPlanHalted Kind = "PlanHalted"
	// KindPlanFinished: it reached its end; the result holds its last state.
	KindPlanFinished Kind = "PlanFinished"
	// KindDecisionWithdrawn: what an earlier record tells was decided and never stored.
	KindDecisionWithdrawn Kind = "DecisionWithdrawn"
	// KindKeySucceeded: another key signs from the next record on.
	KindKeySucceeded Kind = "KeySucceeded"
)

// The kinds of records of releases. Each has its [Delivery].
const (
	// KindReleaseDecision: a line of the history of a release.
	KindReleaseDecision Kind = "ReleaseDecision"
	// KindWorkIntended: the executor is about to write for a ReleaseWork.
	KindWorkIntended Kind = "WorkIntended"
	// KindWorkEnded: how a ReleaseWork ended, with its effect if it had one.
	KindWorkEnded Kind = "WorkEnded"
	// KindHistoryGap: lines of the history were gone before they were recorded.
	KindHistoryGap Kind = "HistoryGap"
	// KindHistorySetBack: the history has gone back, as a status does that is restored.
	KindHistorySetBack Kind = "HistorySetBack"
	// KindReleaseGone: the release does not exist any more.
	KindReleaseGone Kind = "ReleaseGone"
)

// Origin says how it is known that an effect took place. It is empty when there
// was none.
type Origin string

// The origins of a result.
const (
	// OriginAPIResponse: the API server answered the write.
	OriginAPIResponse Origin = "APIResponse"
	// OriginRecovered: the answer was lost; the object was read again and found
	// changed. Its resourceVersion may be later than the write's.
	OriginRecovered Origin = "Recovered"
)

// InitiatedBySystem stands in InitiatedBy when a policy acted by itself.
const InitiatedBySystem = "system:auto"

// Record is what happened to one target in one step, or one decision. It holds
// no value of any field and no free text, so that nothing secret can get into it. The
// contents that it speaks of stand beside the chain, see [Body].
type Record struct {
	// Subject stands in the statement, not in its predicate.
	Subject Subject `json:"-"`

	Kind Kind `json:"kind"`
	// At is when it was so, by the writer's clock; see [Record.Normalized].
	At time.Time `json:"at"`
	// Occurrence tells events of one kind, plan and step apart: 0 for the
	// first, 1 when the plan is deferred a second time.
	Occurrence int32 `json:"occurrence,omitempty"`
	// Chain is filled in when the record is appended.
	Chain Chain `json:"chain"`

	Drift    *Drift    `json:"drift,omitempty"`
	Severity *Severity `json:"severity,omitempty"`
	Policy   *Policy   `json:"policy,omitempty"`
	Plan     *Plan     `json:"plan,omitempty"`
	Step     *Step     `json:"step,omitempty"`
	Intent   *Intent   `json:"intent,omitempty"`
	Result   Result    `json:"result"`
	// Assessment is that of a KindAssessment.
	Assessment *Assessment `json:"assessment,omitempty"`
	// Delivery is what a record of a release has; nil in a record of a remediation.
	Delivery *Delivery `json:"delivery,omitempty"`
	// Withdraws is what a KindDecisionWithdrawn withdraws.
	Withdraws *Head `json:"withdraws,omitempty"`
	// Succession is that of a KindKeySucceeded.
	Succession *Succession `json:"succession,omitempty"`

	// Requester is the user who asked for the plan, Approver the one who had it
	// executed, paused, resumed or ended; InitiatedBy is a user or InitiatedBySystem.
	Requester     string `json:"requester,omitempty"`
	Approver      string `json:"approver,omitempty"`
	InitiatedBy   string `json:"initiatedBy"`
	CorrelationID string `json:"correlationID,omitempty"`
	// DriftReportID names the drift that the plan is about.
	DriftReportID string `json:"driftReportID,omitempty"`
	// Bodies are the contents that the record speaks of, as far as the writer stored them.
	Bodies []Body `json:"bodies,omitempty"`

	Builder Builder `json:"builder"`
}

// Chain is a record's place. UID is that of the policy whose chain it is; of records of releases,
// that of the Environment, or of Plumbline's own namespace for releases that belong to none.
type Chain struct {
	UID string `json:"uid"`
	// Sequence counts from 1 without gaps.
	Sequence int64 `json:"sequence"`
	// Previous is the digest of the record before, empty in the first one.
	Previous string `json:"previous,omitempty"`
}

// Subject is the object that a record is about: the target of a step, or the
// plan itself for a decision.
type Subject struct {
	APIVersion string
	Kind       string
	Namespace  string // empty for objects of the whole cluster
	Name       string
	UID        string
	// Hash of its guarded content afterwards as far as it is known, else the
	// last one known; "absent" for an object that does not exist.
	Hash string
}

// Severity of the drift with the factors of its score; see docs/reference/severity.md.
type Severity struct {
	Level   string   `json:"level"`
	Score   int32    `json:"score"`
	Factors []Factor `json:"factors,omitempty"`
}

// Factor is one weighted part of a score; both numbers are 0 to 100.
type Factor struct {
	Name   string `json:"name"`
	Score  int32  `json:"score"`
	Weight int32  `json:"weight"`
}

// Policy is what asked for the remediation, as it was then.
type Policy struct {
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation,omitempty"`
	Digest     string `json:"digest"`
}

// Plan is what the step belongs to. Its digest is that of its immutable part.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Digest    string `json:"digest"`
}

// ActionQuarantine is the action of a step that leaves its target as it is.
const ActionQuarantine = "Quarantine"

// Step of a plan, counted from 0.
type Step struct {
	Index  int32  `json:"index"`
	Action string `json:"action"`
	// StartedAt is when the ledgers granted it; zero when they never did.
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// Intent is what the executor promised to do before it did it.
type Intent struct {
	Epoch           int64  `json:"epoch"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	PreHash         string `json:"preHash"`
	DesiredHash     string `json:"desiredHash"`
	// DDEM002Hash is the hash of DD-EM-002 of the subject before the write; empty if it was not asked for.
	DDEM002Hash string    `json:"ddem002Hash,omitempty"`
	At          time.Time `json:"at"`
}

// Result is how it ended. State and Reason are one word each.
type Result struct {
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	// ResourceVersion and Hash are those after the effect, Origin says how it is
	// known; all three are empty when nothing was written.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Hash            string `json:"hash,omitempty"`
	// DDEM002Hash is the hash of DD-EM-002 after the effect; empty if it was not asked for.
	DDEM002Hash string    `json:"ddem002Hash,omitempty"`
	Origin      Origin    `json:"origin,omitempty"`
	At          time.Time `json:"at,omitzero"`
}

// Builder is the program that wrote the record. Digest is that of its image or
// binary, empty when it is not known.
type Builder struct {
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"`
}

// Wrote says whether the record is of something that changed its subject in the
// cluster, so that the API server's audit log must have it too. A quarantine leaves its subject
// as it is: the executor notes the quarantine in a Baseline of Plumbline's own.
func (r Record) Wrote() bool { return r.Result.Origin != "" && !r.quarantines() }

// quarantines says that the record is of the step of a Quarantine.
func (r Record) quarantines() bool { return r.Step != nil && r.Step.Action == ActionQuarantine }

// Decides says whether the record is of a decision about a plan.
func (r Record) Decides() bool {
	return r.Plan != nil && r.Step == nil && r.Kind != KindDecisionWithdrawn
}

// ID names the event. A chain tells no event twice, unless it was withdrawn in between.
func (r Record) ID() string {
	if r.Delivery != nil && r.Delivery.Release != nil {
		return r.deliveryID()
	}
	plan, step := "", "plan"
	if r.Plan != nil {
		plan = r.Plan.UID
	}
	if r.Step != nil {
		step = fmt.Sprint(r.Step.Index)
	}
	what := string(r.Kind)
	if r.Assessment != nil { // one that is made again, before its plan has the verdict, is another event
		what += ":" + r.Assessment.UID
	}
	return fmt.Sprintf("%s/%s/%s/%d", cmp.Or(plan, "no-plan:"+r.Subject.UID), step, what, r.Occurrence)
}

// Normalized is the record as it is after a round trip: times in UTC, cut to
// microseconds, which is what etcd keeps of them.
func (r Record) Normalized() Record {
	r.At = normalTime(r.At)
	r.Result.At = normalTime(r.Result.At)
	if r.Step != nil {
		step := *r.Step
		step.StartedAt = normalTime(step.StartedAt)
		r.Step = &step
	}
	if r.Intent != nil {
		intent := *r.Intent
		intent.At = normalTime(intent.At)
		r.Intent = &intent
	}
	r.Assessment = r.Assessment.normalized()
	r.Delivery = r.Delivery.normalized()
	return r
}

func normalTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
