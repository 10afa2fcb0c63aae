// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

// TargetStatus is how far a target of a plan is.
type TargetStatus string

// The statuses of a target.
const (
	TargetPending   TargetStatus = "Pending"
	TargetRunning   TargetStatus = "Running"
	TargetSucceeded TargetStatus = "Succeeded"
	TargetFailed    TargetStatus = "Failed"
	TargetSkipped   TargetStatus = "Skipped"
)

// Source names the origin of a result: the plan while it is kept, and the evidence afterwards.
type Source string

// The sources.
const (
	FromPlan     Source = "Plan"
	FromEvidence Source = "Evidence"
)

// Result is the outcome of a plan.
type Result struct {
	PlanID        string           `json:"planId"`
	Status        Word[PlanStatus] `json:"status"`
	TargetResults []TargetResult   `json:"targetResults"`
	// EvidencePacketID is null where the evidence was not read.
	EvidencePacketID *string       `json:"evidencePacketId"`
	Duration         *Duration     `json:"duration" nullable:"true"`
	Metrics          ResultMetrics `json:"metrics"`
	Source           Word[Source]  `json:"source"`
	PlanName         string        `json:"planName"`
	Namespace        string        `json:"namespace"`
	InitiatedBy      string        `json:"initiatedBy"`
	StartedAt        *time.Time    `json:"startedAt"`
	CompletedAt      *time.Time    `json:"completedAt"`
}

// TargetResult is the outcome of one target.
type TargetResult struct {
	TargetID       string                    `json:"targetId"`
	Status         Word[TargetStatus]        `json:"status"`
	Error          *string                   `json:"error"`
	Duration       *Duration                 `json:"duration" nullable:"true"`
	PreviousDigest *string                   `json:"previousDigest"`
	CurrentDigest  *string                   `json:"currentDigest"`
	Logs           []string                  `json:"logs"`
	Reason         Word[v1alpha1.StepReason] `json:"reason,omitempty"`
	// EvidenceSequence is the number of the signed record, 0 while there is none.
	EvidenceSequence int64 `json:"evidenceSequence,omitempty"`
}

// ResultMetrics sum the results of the targets up.
type ResultMetrics struct {
	TotalTargets          int32     `json:"totalTargets"`
	Succeeded             int32     `json:"succeeded"`
	Failed                int32     `json:"failed"`
	Skipped               int32     `json:"skipped"`
	TotalDuration         *Duration `json:"totalDuration" nullable:"true"`
	AverageTargetDuration *Duration `json:"averageTargetDuration" nullable:"true"`
}

// ResultOf shows the result of a plan that is kept.
func ResultOf(p *v1alpha1.RemediationPlan) Result {
	status := &p.Status
	out := Result{
		PlanID: string(p.UID), Status: Spell(planStatusOf(status.Phase)), TargetResults: []TargetResult{}, Source: Spell(FromPlan),
		PlanName: p.Name, Namespace: p.Namespace, InitiatedBy: p.Spec.Plan.InitiatedBy,
		StartedAt: timeOf(status.StartTime), CompletedAt: timeOf(status.CompletionTime), Duration: between(status.StartTime, status.CompletionTime),
		Metrics: ResultMetrics{
			TotalTargets: status.Counts.Total, Succeeded: status.Counts.Succeeded, Failed: status.Counts.Failed, Skipped: status.Counts.Skipped,
		},
	}
	var taken []packet.Taken
	for i := range p.Spec.Plan.Targets {
		step := StepOf(p, int32(i)) //nolint:gosec // a plan has at most 10 targets
		if step == nil {
			step = &v1alpha1.PlanStep{State: v1alpha1.StepPlanned}
		}
		out.TargetResults = append(out.TargetResults, targetResultOf(TargetIDOf(p, int32(i)), step)) //nolint:gosec // as above
		if step.StartTime != nil && step.CompletionTime != nil {
			taken = append(taken, packet.Taken{From: step.StartTime.Time, To: step.CompletionTime.Time})
		}
	}
	measured := packet.Measure(taken)
	out.Metrics.TotalDuration, out.Metrics.AverageTargetDuration = durationOf(measured.Total), durationOf(measured.Average)
	return out
}

// ResultOfPacket shows the result of a plan as its evidence tells it.
func ResultOfPacket(p *packet.Packet) Result {
	out := Result{
		PlanID: p.Plan.UID, Status: statusOfPacket(p), TargetResults: evidencedResultsOf(p), Source: Spell(FromEvidence), EvidencePacketID: textOf(p.ID),
		PlanName: p.Plan.Name, Namespace: p.Plan.Namespace, InitiatedBy: p.InitiatedBy, Duration: durationOf(p.Duration),
		Metrics: ResultMetrics{
			TotalTargets: int32(p.Metrics.TotalTargets), Succeeded: int32(p.Metrics.Succeeded), Failed: int32(p.Metrics.Failed), Skipped: int32(p.Metrics.Skipped), //nolint:gosec // a plan has at most 10 targets
			TotalDuration: durationOf(p.Metrics.Total), AverageTargetDuration: durationOf(p.Metrics.Average),
		},
	}
	if at := p.CompletedAt.UTC(); !at.IsZero() {
		out.CompletedAt = &at
		if p.Duration != nil {
			started := at.Add(-p.Duration.Duration)
			out.StartedAt = &started
		}
	}
	return out
}

func targetResultOf(id string, s *v1alpha1.PlanStep) TargetResult {
	out := TargetResult{
		TargetID: id, Status: TargetStatusOf(s), Reason: Spell(s.Reason), Duration: between(s.StartTime, s.CompletionTime),
		Logs: append([]string{}, s.Logs...),
	}
	if s.State == v1alpha1.StepFailed || s.State == v1alpha1.StepSkipped || s.State == v1alpha1.StepFenced {
		out.Error = textOf(s.Message)
	}
	if s.Intent != nil {
		out.PreviousDigest = textOf(s.Intent.PreHash)
	}
	if s.Result != nil {
		out.CurrentDigest = textOf(s.Result.Hash)
	}
	if s.Evidence != nil {
		out.EvidenceSequence = s.Evidence.Sequence
	}
	return out
}

// TargetStatusOf returns the status of the target of a step.
func TargetStatusOf(s *v1alpha1.PlanStep) Word[TargetStatus] { return Spell(targetStatusOf(s)) }

// targetStatusOf counts as the status of a plan does: a target that was as desired before has succeeded.
func targetStatusOf(s *v1alpha1.PlanStep) TargetStatus {
	switch s.State {
	case v1alpha1.StepReserved, v1alpha1.StepIntent, v1alpha1.StepApplied:
		return TargetRunning
	case v1alpha1.StepVerified:
		return TargetSucceeded
	case v1alpha1.StepFailed:
		return TargetFailed
	case v1alpha1.StepSkipped, v1alpha1.StepFenced:
		if s.Reason == v1alpha1.ReasonAlreadyDesired {
			return TargetSucceeded
		}
		return TargetSkipped
	case v1alpha1.StepPlanned, "":
		return TargetPending
	}
	return TargetPending
}

func between(from, to *metav1.Time) *Duration {
	if from == nil || to == nil {
		return nil
	}
	return &Duration{max(0, to.Sub(from.Time))}
}

func durationOf(d *metav1.Duration) *Duration {
	if d == nil {
		return nil
	}
	return &Duration{d.Duration}
}
