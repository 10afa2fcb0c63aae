// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Traffic says where the requests of a release go, and where they went.
type Traffic struct {
	CurrentSplit Distribution     `json:"currentSplit"`
	History      []TrafficHistory `json:"history"`
	// LastHour is there where the query asks for it.
	LastHour *TrafficHour `json:"lastHour,omitempty"`
}

// Distribution has the weights that proxies are told, with the endpoints behind them.
type Distribution struct {
	Backends []Backend `json:"backends"`
	// Timestamp is when the split was decided; null before the first decision.
	Timestamp *time.Time `json:"timestamp"`
}

// Backend is a variation as a router sees it.
type Backend struct {
	Name           string  `json:"name"`
	Weight         float64 `json:"weight" doc:"Percent of the requests."`
	HealthyTargets int32   `json:"healthyTargets"`
	TotalTargets   int32   `json:"totalTargets"`
	Variation      string  `json:"variation"`
	Requests       *int64  `json:"requests,omitempty"`
	Failed         *int64  `json:"failed,omitempty"`
	SharePercent   *int32  `json:"sharePercent,omitempty"`
}

// TrafficHistory is one line of the history of a release.
type TrafficHistory struct {
	Timestamp         time.Time `json:"timestamp" kind:"EventTime"`
	Event             string    `json:"event"`
	Run               int64     `json:"run"`
	TrafficPercentage *float64  `json:"trafficPercentage"`
	Message           string    `json:"message,omitempty"`
}

// TrafficOf shows the traffic of a release.
func TrafficOf(r *v1alpha1.ABRelease) Traffic {
	letters := lettersOf(&r.Spec)
	out := Traffic{CurrentSplit: Distribution{Backends: []Backend{}, Timestamp: timeOf(r.Status.EffectiveTime)}, History: []TrafficHistory{}}
	for _, v := range ordered(&r.Spec) {
		b := Backend{Name: letters[v.Name], Variation: string(v.Name)}
		if share := shareOf(r, v.Name); share != nil {
			b.Weight = *share
		}
		for i := range r.Status.Observed {
			if o := &r.Status.Observed[i]; o.Variation == v.Name {
				b.HealthyTargets, b.TotalTargets = o.ReadyEndpoints, o.Targets
				b.Requests, b.Failed, b.SharePercent = o.Requests, o.Failed, o.SharePercent
			}
		}
		out.CurrentSplit.Backends = append(out.CurrentSplit.Backends, b)
	}
	if r.Status.Rollout != nil {
		for i := range r.Status.Rollout.History {
			line := TrafficHistory{}
			show(&line, &r.Status.Rollout.History[i])
			out.History = append(out.History, line)
		}
	}
	return out
}

// HealthStatus says whether the last look found a variation healthy.
type HealthStatus string

// The statuses.
const (
	Healthy       HealthStatus = "Healthy"
	Unhealthy     HealthStatus = "Unhealthy"
	HealthUnknown HealthStatus = "Unknown"
)

// Health is the health of the variations of a release.
type Health struct {
	Variations []VariationHealth `json:"variations"`
	// LastHour is there where the query asks for it.
	LastHour *HealthHour `json:"lastHour,omitempty"`
}

// VariationHealth is the health of one variation in the stage under way.
type VariationHealth struct {
	Name         string             `json:"name"`
	HealthStatus Word[HealthStatus] `json:"healthStatus"`
	// Metrics are null while the judge has counted no requests of the variation.
	Metrics     *VariationMetrics `json:"metrics"`
	Variation   string            `json:"variation"`
	EvaluatedAt *time.Time        `json:"evaluatedAt"`
}

// TransformSchema says that the metrics may be null.
func (VariationHealth) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return orNullAt(s, "metrics")
}

// VariationMetrics are the counts of a variation.
type VariationMetrics struct {
	HealthMetrics
	ErrorRateLow  *float64 `json:"errorRateLow,omitempty"`
	ErrorRateHigh *float64 `json:"errorRateHigh,omitempty"`
	SlowRate      *float64 `json:"slowRate,omitempty"`
	Samples       int64    `json:"samples"`
}

// HealthOf shows the health of a release.
func HealthOf(r *v1alpha1.ABRelease) Health {
	letters := lettersOf(&r.Spec)
	out := Health{Variations: []VariationHealth{}}
	var analysis v1alpha1.RolloutAnalysis
	if r.Status.Rollout != nil && r.Status.Rollout.Analysis != nil {
		analysis = *r.Status.Rollout.Analysis
	}
	for _, v := range ordered(&r.Spec) {
		h := VariationHealth{Name: letters[v.Name], Variation: string(v.Name), HealthStatus: Spell(HealthUnknown)}
		for i := range analysis.Variations {
			judged := &analysis.Variations[i]
			if judged.Variation != v.Name {
				continue
			}
			h.EvaluatedAt, h.Metrics, h.HealthStatus = timeOf(analysis.EvaluationTime), &VariationMetrics{}, Spell(Unhealthy)
			show(h.Metrics, judged)
			if judged.Healthy == v1alpha1.Enabled {
				h.HealthStatus = Spell(Healthy)
			}
		}
		out.Variations = append(out.Variations, h)
	}
	return out
}
