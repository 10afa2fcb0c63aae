// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Severity is how much a drift matters.
type Severity struct {
	Level   Word[v1alpha1.SeverityLevel] `json:"level"`
	Score   int32                        `json:"score" minimum:"0" maximum:"100"`
	Factors []SeverityFactor             `json:"factors"`
	// DriftAge is the age at the moment that the score is of: when the plan was made, or at the last
	// check of a Baseline. So an object that has not changed has the same representation.
	DriftAge          Duration                     `json:"driftAge"`
	RequiresImmediate bool                         `json:"requiresImmediate"`
	Floor             Word[v1alpha1.SeverityLevel] `json:"floor,omitempty"`
	FirstLevel        Word[v1alpha1.SeverityLevel] `json:"firstLevel,omitempty"`
	FirstScore        *int32                       `json:"firstScore,omitempty"`
}

// SeverityFactor is a weighted part of a score.
type SeverityFactor struct {
	Name  string `json:"name"`
	Score int32  `json:"score"`
	// Weight is a fraction of 1, such as 0.3.
	Weight float64 `json:"weight"`
}

func severityOf(s *v1alpha1.Severity, age time.Duration) Severity {
	out := Severity{
		Level: Spell(s.Level), Score: s.Score, Factors: make([]SeverityFactor, 0, len(s.Factors)), DriftAge: Duration{max(0, age)},
		RequiresImmediate: s.Urgency == v1alpha1.UrgencyImmediate,
		Floor:             Spell(s.Floor), FirstLevel: Spell(s.First), FirstScore: s.FirstScore,
	}
	for _, f := range s.Factors {
		out.Factors = append(out.Factors, SeverityFactor{f.Name, f.Score, float64(f.Weight) / 100})
	}
	return out
}

// Drift is one drifted object.
type Drift struct {
	Type       Word[v1alpha1.DriftType] `json:"type"`
	DetectedAt time.Time                `json:"detectedAt"`
	// ComponentID is the name of the object, which counts as a component of its own unless labels say
	// otherwise.
	ComponentID string   `json:"componentId"`
	Paths       []string `json:"paths,omitempty"`
	Actors      []string `json:"actors,omitempty"`
}
