// SPDX-License-Identifier: Apache-2.0

package severity

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Weights of the factors, in percent; they sum to 100.
const (
	weightType        = 30
	weightAge         = 25
	weightEnvironment = 20
	weightComponent   = 15
	weightBlast       = 10
)

// DefaultComponentCriticality is that of a component which its Environment does
// not list, 0 to 100.
const DefaultComponentCriticality = 50

// Lowest scores of the bands; below low it is Info.
const (
	bandCritical = 90
	bandHigh     = 70
	bandMedium   = 45
	bandLow      = 20
)

// ImmediateScore is the score from which a drift is urgent, 0 to 100.
const ImmediateScore = 90

// Input is what the severity of one finding depends on.
type Input struct {
	// DriftType says what happened; an unknown one counts as Other.
	DriftType v1alpha1.DriftType
	// Class says what was touched; an unknown one counts as Other.
	Class v1alpha1.FindingClass
	// Age since the drift was first seen; a negative one, from clocks that
	// disagree, counts as fresh.
	Age time.Duration
	// Criticality of the Environment; empty or unknown counts as Other.
	Criticality v1alpha1.Criticality
	// ComponentCriticality of the object's component, 0 to 100 and cut to that;
	// nil is DefaultComponentCriticality.
	ComponentCriticality *int
	// Dependents counts the components that need this one, see [Dependents].
	Dependents int
}

// Score rates one finding. First, the level at first detection, is left empty:
// only the caller remembers it.
func Score(in Input) v1alpha1.Severity {
	factors := []v1alpha1.SeverityFactor{
		{Name: v1alpha1.FactorDriftType, Score: typeScore(in.DriftType), Weight: weightType},
		{Name: v1alpha1.FactorDriftAge, Score: ageScore(in.Age), Weight: weightAge},
		{Name: v1alpha1.FactorEnvironmentCriticality, Score: environmentScore(in.Criticality), Weight: weightEnvironment},
		{Name: v1alpha1.FactorComponentCriticality, Score: componentScore(in.ComponentCriticality), Weight: weightComponent},
		{Name: v1alpha1.FactorBlastRadius, Score: blastScore(in.Dependents), Weight: weightBlast},
	}
	var sum int32
	for _, f := range factors {
		sum += f.Score * f.Weight
	}
	score := sum / 100
	floor := Floor(in.Class, in.Criticality)
	return v1alpha1.Severity{
		Level:   higher(Band(score), floor),
		Score:   score,
		Factors: factors,
		Floor:   floor,
		Urgency: urgency(score),
	}
}

// Band is the level of a score alone, 0 to 100.
func Band(score int32) v1alpha1.SeverityLevel {
	switch {
	case score >= bandCritical:
		return v1alpha1.SeverityCritical
	case score >= bandHigh:
		return v1alpha1.SeverityHigh
	case score >= bandMedium:
		return v1alpha1.SeverityMedium
	case score >= bandLow:
		return v1alpha1.SeverityLow
	default:
		return v1alpha1.SeverityInfo
	}
}

// urgency compares the cut score. For whole percents that is the same as
// comparing the exact sum: cutting never crosses a whole number.
func urgency(score int32) string {
	if score >= ImmediateScore {
		return v1alpha1.UrgencyImmediate
	}
	return v1alpha1.UrgencyNormal
}

func typeScore(t v1alpha1.DriftType) int32 {
	switch t {
	case v1alpha1.DriftMissing:
		return 100
	case v1alpha1.DriftImage:
		return 80
	case v1alpha1.DriftScale:
		return 50
	case v1alpha1.DriftUnexpected:
		return 30
	case v1alpha1.DriftOther:
		return 10
	default:
		return 10
	}
}

func ageScore(age time.Duration) int32 {
	switch {
	case age < 5*time.Minute:
		return 10
	case age < 30*time.Minute:
		return 30
	case age < time.Hour:
		return 50
	case age < 4*time.Hour:
		return 70
	case age < 24*time.Hour:
		return 85
	default:
		return 100
	}
}

func environmentScore(c v1alpha1.Criticality) int32 {
	switch c {
	case v1alpha1.CriticalityProduction:
		return 100
	case v1alpha1.CriticalityStaging:
		return 60
	case v1alpha1.CriticalityDevelopment:
		return 20
	case v1alpha1.CriticalityOther:
		return 10
	default:
		return 10
	}
}

func componentScore(criticality *int) int32 {
	if criticality == nil {
		return DefaultComponentCriticality
	}
	return int32(min(max(*criticality, 0), 100))
}

func blastScore(dependents int) int32 {
	switch {
	case dependents <= 0:
		return 10
	case dependents < 3:
		return 30
	case dependents < 10:
		return 60
	case dependents < 25:
		return 80
	default:
		return 100
	}
}
