// SPDX-License-Identifier: Apache-2.0

package severity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// mildest input: every factor at its least, and a class without a floor.
var mildest = severity.Input{
	DriftType: v1alpha1.DriftOther, Class: v1alpha1.ClassTemplateMetadata,
	Criticality: v1alpha1.CriticalityOther, ComponentCriticality: new(int),
}

func TestScore_NamesItsFactors(t *testing.T) {
	got := severity.Score(severity.Input{
		DriftType: v1alpha1.DriftImage, Class: v1alpha1.ClassImageVersion,
		Age: 45 * time.Minute, Criticality: v1alpha1.CriticalityStaging, Dependents: 2,
	})
	want := v1alpha1.Severity{
		Level: v1alpha1.SeverityMedium, Floor: v1alpha1.SeverityMedium, Urgency: "Normal",
		Score: 59, // 24 + 12.5 + 12 + 7.5 + 3, exactly
		Factors: []v1alpha1.SeverityFactor{
			{Name: "DriftType", Score: 80, Weight: 30},
			{Name: "DriftAge", Score: 50, Weight: 25},
			{Name: "EnvironmentCriticality", Score: 60, Weight: 20},
			{Name: "ComponentCriticality", Score: 50, Weight: 15},
			{Name: "BlastRadius", Score: 30, Weight: 10},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("severity (-want +got):\n%s", diff)
	}
}

// change of one part of an input.
type change func(*severity.Input)

func age(d time.Duration) change { return func(in *severity.Input) { in.Age = d } }
func dependents(n int) change    { return func(in *severity.Input) { in.Dependents = n } }
func component(n int) change     { return func(in *severity.Input) { in.ComponentCriticality = &n } }
func drift(d v1alpha1.DriftType) change {
	return func(in *severity.Input) { in.DriftType = d }
}
func environment(c v1alpha1.Criticality) change {
	return func(in *severity.Input) { in.Criticality = c }
}

// TestScore_FactorBoundaries holds each factor on both sides of each edge.
func TestScore_FactorBoundaries(t *testing.T) {
	type edge struct {
		change change
		want   int32
	}
	cases := map[string]map[string]edge{
		v1alpha1.FactorDriftType: {
			"missing is worst":              {drift(v1alpha1.DriftMissing), 100},
			"then another digest":           {drift(v1alpha1.DriftImage), 80},
			"then another status":           {drift(v1alpha1.DriftScale), 50},
			"then something unexpected":     {drift(v1alpha1.DriftUnexpected), 30},
			"then anything else":            {drift(v1alpha1.DriftOther), 10},
			"an unknown type is as other":   {drift("Newer"), 10},
			"an absent type is as other":    {drift(""), 10},
			"types are spelt one way alone": {drift("missing"), 10},
		},
		v1alpha1.FactorDriftAge: {
			"a clock that runs ahead": {age(-time.Hour), 10},
			"just seen":               {age(0), 10},
			"just under 5 minutes":    {age(5*time.Minute - 1), 10},
			"5 minutes":               {age(5 * time.Minute), 30},
			"just under 30 minutes":   {age(30*time.Minute - 1), 30},
			"30 minutes":              {age(30 * time.Minute), 50},
			"just under an hour":      {age(time.Hour - 1), 50},
			"an hour":                 {age(time.Hour), 70},
			"just under 4 hours":      {age(4*time.Hour - 1), 70},
			"4 hours":                 {age(4 * time.Hour), 85},
			"just under a day":        {age(24*time.Hour - 1), 85},
			"a day":                   {age(24 * time.Hour), 100},
			"longer than anybody has": {age(1<<63 - 1), 100},
		},
		v1alpha1.FactorEnvironmentCriticality: {
			"production":               {environment(v1alpha1.CriticalityProduction), 100},
			"staging":                  {environment(v1alpha1.CriticalityStaging), 60},
			"development":              {environment(v1alpha1.CriticalityDevelopment), 20},
			"other":                    {environment(v1alpha1.CriticalityOther), 10},
			"no environment is other":  {environment(""), 10},
			"an unknown one, as other": {environment("Edge"), 10},
		},
		v1alpha1.FactorComponentCriticality: {
			"a component not listed":    {func(in *severity.Input) { in.ComponentCriticality = nil }, 50},
			"may be lost":               {component(0), 0},
			"core":                      {component(100), 100},
			"beyond the scale, cut":     {component(101), 100},
			"far beyond the scale, cut": {component(1 << 40), 100},
			"below the scale, cut":      {component(-1), 0},
			"anything between, as is":   {component(37), 37},
		},
		v1alpha1.FactorBlastRadius: {
			"less than none is none":   {dependents(-1), 10},
			"nothing depends on it":    {dependents(0), 10},
			"one component does":       {dependents(1), 30},
			"two components do":        {dependents(2), 30},
			"three components do":      {dependents(3), 60},
			"nine components do":       {dependents(9), 60},
			"ten components do":        {dependents(10), 80},
			"twenty-four do":           {dependents(24), 80},
			"twenty-five do":           {dependents(25), 100},
			"more than anybody counts": {dependents(1 << 40), 100},
		},
	}
	for factor, edges := range cases {
		for name, tc := range edges {
			t.Run(factor+"/"+name, func(t *testing.T) {
				in := mildest
				tc.change(&in)
				for _, f := range severity.Score(in).Factors {
					if f.Name == factor && f.Score != tc.want {
						t.Errorf("got %d, want %d", f.Score, tc.want)
					}
				}
			})
		}
	}
}

func TestBand_Boundaries(t *testing.T) {
	want := func(score int32) v1alpha1.SeverityLevel {
		levels := []v1alpha1.SeverityLevel{"Critical", "High", "Medium", "Low", "Info"}
		for i, least := range []int32{90, 70, 45, 20, 0} {
			if score >= least {
				return levels[i]
			}
		}
		return ""
	}
	for score := range int32(101) {
		if got := severity.Band(score); got != want(score) {
			t.Errorf("score %d: got %s, want %s", score, got, want(score))
		}
	}
}

// TestScore_SpansTheScale: no drift scores 0, and one alone scores 100.
func TestScore_SpansTheScale(t *testing.T) {
	least := severity.Score(mildest) // 3 + 2.5 + 2 + 0 + 1
	if least.Score != 8 || least.Level != v1alpha1.SeverityInfo || least.Urgency != v1alpha1.UrgencyNormal {
		t.Errorf("mildest drift: got %d %s %s", least.Score, least.Level, least.Urgency)
	}
	most := severity.Score(severity.Input{
		DriftType: v1alpha1.DriftMissing, Class: v1alpha1.ClassObjectMissing, Age: 24 * time.Hour,
		Criticality: v1alpha1.CriticalityProduction, ComponentCriticality: new(100), Dependents: 25,
	})
	if most.Score != 100 || most.Level != v1alpha1.SeverityCritical || most.Urgency != v1alpha1.UrgencyImmediate {
		t.Errorf("worst drift: got %d %s %s", most.Score, most.Level, most.Urgency)
	}
}

// TestScore_ImageInProduction is the case for which floors exist: by its score
// another digest of the same image in production becomes High only after a day,
// which is when the usual policies hand a drift over to people.
func TestScore_ImageInProduction(t *testing.T) {
	scores := map[time.Duration]int32{
		0: 55, 5 * time.Minute: 60, 30 * time.Minute: 65, time.Hour: 70, 4 * time.Hour: 73, 24 * time.Hour: 77,
	}
	for age, want := range scores {
		got := severity.Score(severity.Input{
			DriftType: v1alpha1.DriftImage, Class: v1alpha1.ClassImageVersion,
			Age: age, Criticality: v1alpha1.CriticalityProduction,
		})
		if got.Score != want || got.Level != v1alpha1.SeverityHigh {
			t.Errorf("after %v: got %d %s, want %d High", age, got.Score, got.Level, want)
		}
	}
}
