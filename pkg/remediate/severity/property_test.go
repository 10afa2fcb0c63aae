// SPDX-License-Identifier: Apache-2.0

package severity_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// From mild to severe.
var (
	driftTypes    = []v1alpha1.DriftType{v1alpha1.DriftOther, v1alpha1.DriftUnexpected, v1alpha1.DriftScale, v1alpha1.DriftImage, v1alpha1.DriftMissing}
	criticalities = []v1alpha1.Criticality{v1alpha1.CriticalityOther, v1alpha1.CriticalityDevelopment, v1alpha1.CriticalityStaging, v1alpha1.CriticalityProduction}
	levels        = []v1alpha1.SeverityLevel{v1alpha1.SeverityInfo, v1alpha1.SeverityLow, v1alpha1.SeverityMedium, v1alpha1.SeverityHigh, v1alpha1.SeverityCritical}
	classes       = []v1alpha1.FindingClass{
		v1alpha1.ClassTemplateMetadata, v1alpha1.ClassOther, v1alpha1.ClassResources, v1alpha1.ClassScale, v1alpha1.ClassStorage,
		v1alpha1.ClassNetworking, v1alpha1.ClassSecurity, v1alpha1.ClassExecution, v1alpha1.ClassImageVersion, v1alpha1.ClassObjectUnexpected,
		v1alpha1.ClassImageRepository, v1alpha1.ClassContainerMissing, v1alpha1.ClassObjectMissing,
	}
)

// drawn is an Input by the ranks of its parts, so that "worse" is "greater".
type drawn struct{ driftType, class, criticality, component, dependents, minutes int }

func draw(t *rapid.T) drawn {
	return drawn{
		driftType:   rapid.IntRange(0, len(driftTypes)-1).Draw(t, "type"),
		class:       rapid.IntRange(0, len(classes)-1).Draw(t, "class"),
		criticality: rapid.IntRange(0, len(criticalities)-1).Draw(t, "criticality"),
		component:   rapid.IntRange(0, 100).Draw(t, "component"),
		dependents:  rapid.IntRange(0, 30).Draw(t, "dependents"),
		minutes:     rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 2000)).Draw(t, "minutes"),
	}
}

func (d drawn) input() severity.Input {
	return severity.Input{
		DriftType: driftTypes[d.driftType], Class: classes[d.class], Criticality: criticalities[d.criticality],
		ComponentCriticality: &d.component, Dependents: d.dependents, Age: time.Duration(d.minutes) * time.Minute,
	}
}

// TestScore_Monotone: what makes one part of a drift worse makes neither its
// score nor its level milder.
func TestScore_Monotone(t *testing.T) {
	parts := map[string]func(a, b *drawn) (*int, int){
		"type":        func(a, b *drawn) (*int, int) { return &a.driftType, b.driftType },
		"class":       func(a, b *drawn) (*int, int) { return &a.class, b.class },
		"criticality": func(a, b *drawn) (*int, int) { return &a.criticality, b.criticality },
		"component":   func(a, b *drawn) (*int, int) { return &a.component, b.component },
		"dependents":  func(a, b *drawn) (*int, int) { return &a.dependents, b.dependents },
		"age":         func(a, b *drawn) (*int, int) { return &a.minutes, b.minutes },
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a, other := draw(t), draw(t)
				worse := a
				to, from := part(&worse, &other)
				*to = max(*to, from)
				mild, severe := severity.Score(a.input()), severity.Score(worse.input())
				if severe.Score < mild.Score {
					t.Fatalf("score falls from %d to %d", mild.Score, severe.Score)
				}
				if severity.CompareLevels(severe.Level, mild.Level) < 0 {
					t.Fatalf("level falls from %s to %s", mild.Level, severe.Level)
				}
			})
		})
	}
}

// reference is the published algorithm in floating point, factor by factor.
func reference(d drawn) float64 {
	score := 0.0
	score += []float64{10, 30, 50, 80, 100}[d.driftType] * 0.30
	age := 100.0
	for _, band := range [][2]float64{{1440, 85}, {240, 70}, {60, 50}, {30, 30}, {5, 10}} {
		if float64(d.minutes) < band[0] {
			age = band[1]
		}
	}
	score += age * 0.25
	score += []float64{10, 20, 60, 100}[d.criticality] * 0.20
	score += float64(d.component) * 0.15
	blast := 100.0
	for _, band := range [][2]float64{{25, 80}, {10, 60}, {3, 30}, {1, 10}} {
		if float64(d.dependents) < band[0] {
			blast = band[1]
		}
	}
	score += blast * 0.10
	return score
}

// TestScore_LikeTheReference: the score is the whole part of the reference's,
// and urgency, which the reference takes from the uncut score, is the same from
// the cut one. Only where the exact score is whole may floating point miss it,
// by less than 1e-9; integers do not.
func TestScore_LikeTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		got, want := severity.Score(d.input()), reference(d)
		if whole := math.Round(want); math.Abs(want-whole) < 1e-9 {
			want = whole
		}
		if float64(got.Score) != math.Floor(want) {
			t.Fatalf("score: got %d, want the whole part of %v", got.Score, want)
		}
		if urgent := got.Urgency == v1alpha1.UrgencyImmediate; urgent != (want >= 90) {
			t.Fatalf("urgency of %v: got %s", want, got.Urgency)
		}
	})
}

// TestScore_UrgencyOfTheExactSum walks every reachable sum of weighted factors:
// whether it reaches 90 can be read from the cut score.
func TestScore_UrgencyOfTheExactSum(t *testing.T) {
	urgent := 0
	everyInput(func(in severity.Input) {
		got := severity.Score(in)
		var exact int32
		for _, f := range got.Factors {
			exact += f.Score * f.Weight
		}
		if (exact >= 90*100) != (got.Urgency == v1alpha1.UrgencyImmediate) {
			t.Errorf("%+v: exact score %d.%02d, urgency %s", in, exact/100, exact%100, got.Urgency)
		}
		if got.Urgency == v1alpha1.UrgencyImmediate {
			urgent++
		}
	})
	if urgent == 0 {
		t.Error("no input is urgent, so nothing was shown")
	}
}

// everyInput visits one input per combination of factor scores, component
// criticalities in full.
func everyInput(visit func(severity.Input)) {
	for _, driftType := range driftTypes {
		for _, age := range ages {
			for _, criticality := range criticalities {
				for _, dependents := range []int{0, 1, 3, 10, 25} {
					for component := range 101 {
						visit(severity.Input{
							DriftType: driftType, Class: v1alpha1.ClassTemplateMetadata, Age: age, Criticality: criticality,
							Dependents: dependents, ComponentCriticality: &component,
						})
					}
				}
			}
		}
	}
}
