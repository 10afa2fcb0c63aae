// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// Evidence is the packet of a plan, with the signed records that it is read from.
type Evidence struct {
	ID            string     `json:"id"`
	DetectedDrift []Drift    `json:"detectedDrift"`
	Severities    []Severity `json:"severities"`
	// Policy and Plan are the bodies that the records name by their digests; null where the body was
	// not read, or cannot be believed.
	Policy             json.RawMessage `json:"policy"`
	Plan               json.RawMessage `json:"plan"`
	Results            []TargetResult  `json:"results"`
	InitiatedBy        string          `json:"initiatedBy"`
	InitiatedAt        time.Time       `json:"initiatedAt"`
	CompletedAt        *time.Time      `json:"completedAt"`
	GeneratedArtifacts []string        `json:"generatedArtifacts" doc:"The digests of the contents of the writes."`
	PlanID             string          `json:"planId"`
	PlanName           string          `json:"planName"`
	Namespace          string          `json:"namespace"`
	// Status is absent while the plan has not ended.
	Status    Word[PlanStatus] `json:"status,omitempty"`
	Requester string           `json:"requester,omitempty" doc:"The user whose rights counted."`
	Approvers []string         `json:"approvers,omitempty" doc:"The users who had the plan executed, paused, resumed or ended."`
	Chain     EvidenceChain    `json:"chain"`
	// Artifacts are the contents that GeneratedArtifacts names.
	Artifacts []EvidenceArtifact `json:"artifacts"`
	// Envelopes are the DSSE envelopes of the records, in their order.
	Envelopes []json.RawMessage `json:"envelopes"`
	Verified  bool              `json:"verified" doc:"Each record of the chain is signed by a known key, the chain has no gap, and it goes as far as it should."`
	Problems  []string          `json:"problems" doc:"The problems of the chain; empty if it is verified."`
	Warnings  []string          `json:"warnings,omitempty" doc:"The sources that the records were not compared with."`
}

// EvidenceChain says which records of a chain are those of the plan. Records of other plans may stand between the
// first and the last.
type EvidenceChain struct {
	ID      string `json:"id" kind:"UID" doc:"The uid of the policy whose chain it is."`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Records int    `json:"records"`
}

// EvidenceArtifact is a content of a write.
type EvidenceArtifact struct {
	Of     string  `json:"of" doc:"Such as before, authorized or written."`
	Digest string  `json:"digest"`
	Steps  []int32 `json:"steps" doc:"The steps whose records name the content."`
	// Body is null where the content was not read, or cannot be believed. Problem has the reason.
	Body    json.RawMessage `json:"body"`
	Problem string          `json:"problem,omitempty"`
}

// EvidenceOf shows a packet with its envelopes, and the findings of their verification.
func EvidenceOf(p *packet.Packet, envelopes []json.RawMessage, problems, warnings []string) Evidence {
	out := Evidence{
		PlanID: p.Plan.UID, PlanName: p.Plan.Name, Namespace: p.Plan.Namespace, Status: statusOfPacket(p), Requester: p.Requester, Approvers: p.Approvers,
		Artifacts: []EvidenceArtifact{}, Warnings: warnings,
		ID: p.ID, DetectedDrift: []Drift{}, Severities: []Severity{}, Policy: orNull(p.Policy.Body), Plan: orNull(p.Plan.Body),
		Results: []TargetResult{}, InitiatedBy: p.InitiatedBy, InitiatedAt: p.InitiatedAt.UTC(), GeneratedArtifacts: []string{},
		Envelopes: append([]json.RawMessage{}, envelopes...), Verified: len(problems) == 0, Problems: append([]string{}, problems...),
	}
	if !p.CompletedAt.IsZero() {
		at := p.CompletedAt.UTC()
		out.CompletedAt = &at
	}
	show(&out.Chain, &p.Chain)
	for i := range p.DetectedDrift {
		out.addDrift(p, &p.DetectedDrift[i])
	}
	out.Results = append(out.Results, evidencedResultsOf(p)...)
	for _, a := range p.GeneratedArtifacts {
		out.GeneratedArtifacts = append(out.GeneratedArtifacts, a.Digest)
		out.Artifacts = append(out.Artifacts, EvidenceArtifact{
			Of: underscored(string(a.Of)), Digest: a.Digest, Steps: append([]int32{}, a.Steps...), Body: orNull(a.Body), Problem: a.Problem,
		})
	}
	return out
}

// statusOfPacket returns the status in which a plan ended; empty while it has not.
func statusOfPacket(p *packet.Packet) Word[PlanStatus] {
	if p.Status == "" {
		return ""
	}
	return Spell(planStatusOf(v1alpha1.PlanPhase(p.Status)))
}

// evidencedResultsOf returns the results of the steps that have ended. A target has the id that it has in the plan.
func evidencedResultsOf(p *packet.Packet) []TargetResult {
	uids := map[int32]string{}
	for i := range p.DetectedDrift {
		_, uids[p.DetectedDrift[i].Step], _ = strings.Cut(p.DetectedDrift[i].Object, "#")
	}
	results := []TargetResult{}
	for i := range p.Results {
		r := &p.Results[i]
		results = append(results, evidencedResultOf(cmp.Or(uids[r.Step], derivedTargetID(p.Plan.UID, r.Step)), r))
	}
	return results
}

func (e *Evidence) addDrift(p *packet.Packet, d *packet.Drift) {
	e.DetectedDrift = append(e.DetectedDrift, Drift{
		Type: Word[v1alpha1.DriftType](underscored(string(d.DriftType))), DetectedAt: d.FirstSeen.UTC(), ComponentID: d.Object, Paths: d.Paths, Actors: d.Actors,
	})
	if d.Severity != nil {
		scored := v1alpha1.Severity{Level: v1alpha1.SeverityLevel(d.Severity.Level), Score: d.Severity.Score}
		for _, f := range d.Severity.Factors {
			scored.Factors = append(scored.Factors, v1alpha1.SeverityFactor{Name: f.Name, Score: f.Score, Weight: f.Weight})
		}
		e.Severities = append(e.Severities, severityOf(&scored, p.InitiatedAt.Sub(d.FirstSeen)))
	}
}

func evidencedResultOf(id string, r *packet.Result) TargetResult {
	step := v1alpha1.PlanStep{State: v1alpha1.StepState(r.Status), Reason: v1alpha1.StepReason(r.Reason)}
	return TargetResult{
		TargetID: id, Status: Spell(targetStatusOf(&step)), Reason: Spell(step.Reason), Duration: durationOf(r.Duration),
		PreviousDigest: textOf(r.PreviousDigest), CurrentDigest: textOf(r.CurrentDigest), Logs: []string{}, EvidenceSequence: r.Record,
	}
}

func orNull(body json.RawMessage) json.RawMessage {
	if body == nil {
		return json.RawMessage("null")
	}
	return body
}
