// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
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
	// Envelopes are the DSSE envelopes of the records, in their order.
	Envelopes []json.RawMessage `json:"envelopes"`
	Verified  bool              `json:"verified" doc:"Each record is signed by a known key, and the chain has no gap."`
	Problems  []string          `json:"problems"`
}

// EvidenceOf shows a packet with its envelopes, and the problems that their verification found.
func EvidenceOf(p *packet.Packet, envelopes []json.RawMessage, problems []string) Evidence {
	out := Evidence{
		ID: p.ID, DetectedDrift: []Drift{}, Severities: []Severity{}, Policy: orNull(p.Policy.Body), Plan: orNull(p.Plan.Body),
		Results: []TargetResult{}, InitiatedBy: p.InitiatedBy, InitiatedAt: p.InitiatedAt.UTC(), GeneratedArtifacts: []string{},
		Envelopes: append([]json.RawMessage{}, envelopes...), Verified: len(problems) == 0, Problems: append([]string{}, problems...),
	}
	if !p.CompletedAt.IsZero() {
		at := p.CompletedAt.UTC()
		out.CompletedAt = &at
	}
	ids := map[int32]string{}
	for i := range p.DetectedDrift {
		out.addDrift(p, &p.DetectedDrift[i])
		ids[p.DetectedDrift[i].Step] = nameID("evidence", p.ID, p.DetectedDrift[i].Object)
	}
	for i := range p.Results {
		out.Results = append(out.Results, evidencedResultOf(ids[p.Results[i].Step], &p.Results[i]))
	}
	for _, a := range p.GeneratedArtifacts {
		out.GeneratedArtifacts = append(out.GeneratedArtifacts, a.Digest)
	}
	return out
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
