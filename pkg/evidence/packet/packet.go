// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Packet is all that is known about one plan.
type Packet struct {
	// ID is the same for the same records: the chain with the first and the last of them.
	ID            string `json:"evidencePacketID"`
	Chain         Span   `json:"chain"`
	DriftReportID string `json:"driftReportID,omitempty"`
	CorrelationID string `json:"correlationID,omitempty"`
	// Status is the phase in which the plan ended; empty while it has not.
	Status string `json:"status,omitempty"`

	// InitiatedBy is system:auto or a user, Requester whose rights counted, and Approvers those
	// who had the plan executed, paused, resumed or ended.
	InitiatedBy string    `json:"initiatedBy"`
	Requester   string    `json:"requester,omitempty"`
	Approvers   []string  `json:"approvers,omitempty"`
	InitiatedAt time.Time `json:"initiatedAt"`
	CompletedAt time.Time `json:"completedAt,omitzero"`

	Policy Policy `json:"policy"`
	Plan   Plan   `json:"plan"`
	// DetectedDrift has an item for each target of the plan.
	DetectedDrift []Drift `json:"detectedDrift"`
	// Results have an item for each step that has ended.
	Results []Result `json:"results"`
	// Duration is from the first grant of a step to the end of the plan.
	Duration *metav1.Duration `json:"duration,omitempty"`
	Metrics  Metrics          `json:"metrics"`
	// GeneratedArtifacts are the contents of the writes, each once.
	GeneratedArtifacts []Artifact `json:"generatedArtifacts"`
}

// Span says which records of a chain are those of the plan. Records of other plans may stand
// between the first and the last.
type Span struct {
	UID     string `json:"uid"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Records int    `json:"records"`
}

// Content is a body, or why there is none that can be believed.
type Content struct {
	Body    json.RawMessage `json:"body,omitempty"`
	Problem string          `json:"problem,omitempty"`
}

// Policy is what the plan was made by.
type Policy struct {
	evidence.Policy
	Content
}

// Plan is what was carried out.
type Plan struct {
	evidence.Plan
	Content
}

// Drift is one drifted object, with its severity when the plan was made. What only the plan
// says is left out where its body cannot be believed.
type Drift struct {
	Step        int32              `json:"step"`
	Object      string             `json:"object"`
	DriftType   DesignDriftType    `json:"driftType,omitempty"`
	Severity    *evidence.Severity `json:"severity,omitempty"`
	Paths       []string           `json:"paths"`
	FirstSeen   time.Time          `json:"firstSeen,omitzero"`
	Actors      []string           `json:"actors,omitempty"`
	Action      string             `json:"action"`
	DriftedHash string             `json:"driftedHash,omitempty"`
	DesiredHash string             `json:"desiredHash,omitempty"`
}

// Result is how one step ended.
type Result struct {
	Step   int32  `json:"step"`
	Object string `json:"object"`
	Action string `json:"action"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// StartedAt is when the ledgers granted the step; Duration is from then to its end. Both
	// are absent for a step that was never granted.
	StartedAt  time.Time        `json:"startedAt,omitzero"`
	FinishedAt time.Time        `json:"finishedAt"`
	Duration   *metav1.Duration `json:"duration,omitempty"`
	// PreviousDigest and CurrentDigest are the hashes of the object before and after.
	PreviousDigest string `json:"previousDigest,omitempty"`
	CurrentDigest  string `json:"currentDigest"`
	// Record is the sequence of the signed record that says all this.
	Record int64 `json:"record"`
	// Effect is absent as long as no assessment of the step has ended.
	Effect *Effect `json:"effect,omitempty"`
}

// Effect is what the assessment of a step came to.
type Effect struct {
	evidence.Assessment
	CompletedAt time.Time `json:"completedAt"`
	// Record is the sequence of the signed record that says all this.
	Record int64 `json:"record"`
}

// Metrics sum the results up.
type Metrics struct {
	TotalTargets int `json:"totalTargets"`
	Succeeded    int `json:"succeeded"`
	Failed       int `json:"failed"`
	Skipped      int `json:"skipped"`
	Durations
}

// Artifact is one content of a write.
type Artifact struct {
	Of     evidence.BodyOf `json:"of"`
	Digest string          `json:"digest"`
	// Steps whose records name it.
	Steps []int32 `json:"steps"`
	Content
}

// Bodies has what was read of each digest.
type Bodies map[string]Content

// Read makes a Content of what [evidence.ReadBody] gave.
func Read(body []byte, err error) Content {
	switch {
	case err != nil:
		return Content{Problem: err.Error()}
	case !json.Valid(body):
		return Content{Problem: "the body is no JSON"}
	}
	return Content{Body: body}
}

// Digests returns the digests of all bodies that a packet of the records has, each once.
func Digests(records []evidence.Sealed) []string {
	var all []string
	seen := map[string]bool{"": true}
	add := func(digest string) {
		if !seen[digest] {
			seen[digest] = true
			all = append(all, digest)
		}
	}
	for i := range records {
		r := &records[i].Record
		if r.Policy != nil {
			add(r.Policy.Digest)
		}
		if r.Plan != nil {
			add(r.Plan.Digest)
		}
		for _, b := range r.Bodies {
			add(b.Digest)
		}
	}
	return all
}

// New puts the good records of one plan, in the order of their chain, together with bodies. It
// needs one record at least.
func New(records []evidence.Sealed, bodies Bodies, withdrawn func(*evidence.Record) bool) *Packet {
	first, last := &records[0].Record, &records[len(records)-1].Record
	p := &Packet{
		ID:    fmt.Sprintf("%s.%d-%d", first.Chain.UID, first.Chain.Sequence, last.Chain.Sequence),
		Chain: Span{UID: first.Chain.UID, First: first.Chain.Sequence, Last: last.Chain.Sequence, Records: len(records)},

		InitiatedBy: first.InitiatedBy, Requester: first.Requester, InitiatedAt: first.At,
		CorrelationID: first.CorrelationID, DriftReportID: first.DriftReportID,
		Results: []Result{}, GeneratedArtifacts: []Artifact{},
	}
	for i := range records {
		if r := &records[i].Record; !withdrawn(r) {
			p.add(r, bodies)
		}
	}
	plan := p.planned()
	p.DetectedDrift = driftOf(plan, last.Plan, records)
	p.sum(len(p.DetectedDrift))
	return p
}

// add takes in what one record says.
func (p *Packet) add(r *evidence.Record, bodies Bodies) {
	if r.Policy != nil {
		p.Policy = Policy{*r.Policy, bodies.of(r.Policy.Digest)}
	}
	if r.Plan != nil {
		p.Plan = Plan{*r.Plan, bodies.of(r.Plan.Digest)}
	}
	p.approvedBy(r.Approver)
	switch r.Kind {
	case evidence.KindStep:
		p.Results = append(p.Results, resultOf(r))
		p.artifacts(r, bodies)
	case evidence.KindAssessment:
		p.assess(r)
	case evidence.KindPlanFinished, evidence.KindPlanCanceled, evidence.KindPlanHalted:
		p.Status, p.CompletedAt = r.Result.State, r.At
	case evidence.KindFence, evidence.KindStandby, evidence.KindPlanCreated, evidence.KindPlanDeferred, evidence.KindPlanApproved,
		evidence.KindPlanPaused, evidence.KindPlanResumed, evidence.KindDecisionWithdrawn, evidence.KindKeySucceeded,
		evidence.KindReleaseDecision, evidence.KindWorkIntended, evidence.KindWorkEnded, evidence.KindHistoryGap, evidence.KindHistorySetBack, evidence.KindReleaseGone:
	}
}

// assess takes in the verdict on a step, whose record is an earlier one.
func (p *Packet) assess(r *evidence.Record) {
	for i := range p.Results {
		if p.Results[i].Step == r.Step.Index {
			p.Results[i].Effect = &Effect{*r.Assessment, r.At, r.Chain.Sequence}
		}
	}
}

func (p *Packet) approvedBy(user string) {
	if user != "" && !slices.Contains(p.Approvers, user) {
		p.Approvers = append(p.Approvers, user)
	}
}

func (b Bodies) of(digest string) Content {
	if content, ok := b[digest]; ok {
		return content
	}
	return Content{Problem: "the body was not read"}
}

func resultOf(r *evidence.Record) Result {
	result := Result{
		Step: r.Step.Index, Object: r.Subject.String(), Action: r.Step.Action, Status: r.Result.State, Reason: r.Result.Reason,
		StartedAt: r.Step.StartedAt, FinishedAt: r.At, CurrentDigest: r.Subject.Hash, Record: r.Chain.Sequence,
	}
	if r.Intent != nil {
		result.PreviousDigest = r.Intent.PreHash
	}
	if d, ok := between(result.StartedAt, result.FinishedAt); ok {
		result.Duration = &metav1.Duration{Duration: d}
	}
	return result
}

// artifacts takes in the contents of a write.
func (p *Packet) artifacts(r *evidence.Record, bodies Bodies) {
	for _, b := range r.Bodies {
		if b.Of == evidence.BodyPolicy || b.Of == evidence.BodyPlan {
			continue
		}
		if known := p.artifact(b); known != nil {
			known.Steps = append(known.Steps, r.Step.Index)
			continue
		}
		p.GeneratedArtifacts = append(p.GeneratedArtifacts, Artifact{Of: b.Of, Digest: b.Digest, Steps: []int32{r.Step.Index}, Content: bodies.of(b.Digest)})
	}
}

func (p *Packet) artifact(b evidence.Body) *Artifact {
	for i := range p.GeneratedArtifacts {
		if known := &p.GeneratedArtifacts[i]; known.Of == b.Of && known.Digest == b.Digest {
			return known
		}
	}
	return nil
}

// planned reads the plan's body; nil when it cannot be believed.
func (p *Packet) planned() *v1alpha1.PlannedRemediation {
	if p.Plan.Body == nil {
		return nil
	}
	plan := &v1alpha1.PlannedRemediation{}
	if err := json.Unmarshal(p.Plan.Body, plan); err != nil {
		p.Plan.Content = Content{Problem: "the body is no plan: " + err.Error()}
		return nil
	}
	return plan
}

// sum counts the results, and how long they took.
func (p *Packet) sum(targets int) {
	m := Metrics{TotalTargets: targets}
	var taken []Taken
	var begun time.Time
	for i := range p.Results {
		r := &p.Results[i]
		switch {
		case r.Status == string(v1alpha1.StepVerified), r.Reason == string(v1alpha1.ReasonAlreadyDesired):
			m.Succeeded++
		case r.Status == string(v1alpha1.StepFailed):
			m.Failed++
		default:
			m.Skipped++
		}
		taken = append(taken, Taken{r.StartedAt, r.FinishedAt})
		if !r.StartedAt.IsZero() && (begun.IsZero() || r.StartedAt.Before(begun)) {
			begun = r.StartedAt
		}
	}
	m.Durations = Measure(taken)
	if d, ok := between(begun, p.CompletedAt); ok {
		p.Duration = &metav1.Duration{Duration: d}
	}
	p.Metrics = m
}
