// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Stage is a stage of the run of a release.
type Stage struct {
	ID                string                           `json:"id"`
	ABReleaseID       string                           `json:"abReleaseId"`
	StageNumber       int32                            `json:"stageNumber"`
	TrafficPercentage *float64                         `json:"trafficPercentage"`
	Status            Word[v1alpha1.RolloutStageState] `json:"status" kind:"State"`
	HealthThreshold   *float64                         `json:"healthThreshold"`
	DurationSeconds   *int64                           `json:"durationSeconds"`
	RequireApproval   bool                             `json:"requireApproval"`
	StartedAt         *time.Time                       `json:"startedAt" kind:"StartTime"`
	CompletedAt       *time.Time                       `json:"completedAt" kind:"CompletionTime"`
	HealthResult      *HealthResult                    `json:"healthResult"`
	ShiftedAt         *time.Time                       `json:"shiftedAt,omitempty" kind:"ShiftTime"`
	PassedAt          *time.Time                       `json:"passedAt,omitempty" kind:"PassTime"`
	ApprovedBy        string                           `json:"approvedBy,omitempty"`
	Restarts          int32                            `json:"restarts"`
	Message           string                           `json:"message,omitempty"`
}

// TransformSchema says that the result may be null.
func (Stage) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNullAt(s, "healthResult")
}

// orNullAt lets the object of a field be null, for which huma has no tag.
func orNullAt(s *huma.Schema, field string) *huma.Schema {
	s.Properties[field] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties[field], {Type: "null"}}}
	return s
}

// HealthResult is the opinion of the judge about a stage.
type HealthResult struct {
	Healthy          bool                         `json:"healthy"`
	HealthPercentage *float64                     `json:"healthPercentage"`
	Metrics          HealthMetrics                `json:"metrics"`
	Samples          int64                        `json:"samples"`
	EvaluatedAt      *time.Time                   `json:"evaluatedAt"`
	Verdict          Word[v1alpha1.HealthVerdict] `json:"verdict,omitempty"`
	Reason           string                       `json:"reason,omitempty"`
	Message          string                       `json:"message,omitempty"`
}

// HealthMetrics are the counts of a variation in a stage: rates in percent, null where they
// are not known, and latencies in milliseconds.
type HealthMetrics struct {
	SuccessRate *float64 `json:"successRate"`
	ErrorRate   *float64 `json:"errorRate"`
	LatencyP50  int64    `json:"latencyP50" kind:"LatencyP50Milliseconds"`
	LatencyP99  int64    `json:"latencyP99" kind:"LatencyP99Milliseconds"`
}

// stagesOf returns the stages of the run; before the first run those of the release's own strategy.
func stagesOf(r *v1alpha1.ABRelease) []Stage {
	stages := []Stage{}
	status := r.Status.Rollout
	switch {
	case r.Spec.Rollout == nil:
	case status != nil && status.Run != nil:
		for i := range status.Run.Stages {
			stages = append(stages, stageOf(r, status, &status.Run.Stages[i]))
		}
	case r.Spec.Rollout.Strategy != nil:
		for i, s := range r.Spec.Rollout.Strategy.Stages {
			stages = append(stages, pendingStage(r, int32(i)+1, s)) //nolint:gosec // at most 16 stages
		}
	}
	return stages
}

func stageOf(r *v1alpha1.ABRelease, status *v1alpha1.RolloutStatus, s *v1alpha1.RolloutStageStatus) Stage {
	out := Stage{ID: stageID(r, status.Run.Number, s.Number), ABReleaseID: string(r.UID), StageNumber: s.Number}
	show(&out, s)
	out.HealthResult = healthResultOf(status, s.Number)
	return out
}

// pendingStage shows a stage of a strategy that no run has begun.
func pendingStage(r *v1alpha1.ABRelease, number int32, s v1alpha1.RolloutStage) Stage {
	out := Stage{ID: stageID(r, 0, number), ABReleaseID: string(r.UID), StageNumber: number, Status: Spell(v1alpha1.RolloutStageState("Pending"))}
	if s.Duration != nil {
		seconds := int64(s.Duration.Seconds())
		out.DurationSeconds = &seconds
	}
	ramp := StrategyStage{}
	show(&ramp, &s)
	out.TrafficPercentage, out.HealthThreshold, out.RequireApproval = ramp.TrafficPercentage, ramp.HealthThreshold, s.RequireApproval == v1alpha1.Enabled
	return out
}

func stageID(r *v1alpha1.ABRelease, run int64, number int32) string {
	return nameID("stage", string(r.UID), strconv.FormatInt(run, 10), strconv.Itoa(int(number)))
}

// healthResultOf returns the last opinion about a stage; nil if the judge has none.
func healthResultOf(status *v1alpha1.RolloutStatus, number int32) *HealthResult {
	a := status.Analysis
	if a == nil || a.Run != status.Run.Number {
		return nil
	}
	if a.Stage == number && a.Verdict != "" {
		return judgedOf(&a.HealthResult, status.Run.To.Variation)
	}
	for i := range a.Stages {
		if a.Stages[i].Stage == number {
			return judgedOf(&a.Stages[i].HealthResult, status.Run.To.Variation)
		}
	}
	return nil
}

// judgedOf shows an opinion, with the counts of the canary.
func judgedOf(h *v1alpha1.HealthResult, canary v1alpha1.VariationName) *HealthResult {
	out := &HealthResult{Verdict: Spell(h.Verdict), Reason: h.Reason, Message: h.Message, EvaluatedAt: timeOf(h.EvaluationTime)}
	for i := range h.Variations {
		v := &h.Variations[i]
		if v.Variation != canary {
			continue
		}
		out.Healthy, out.Samples, out.HealthPercentage = v.Healthy == v1alpha1.Enabled, v.Samples, rateOf(v.HealthPercentage)
		show(&out.Metrics, v)
	}
	return out
}
