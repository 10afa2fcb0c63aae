// SPDX-License-Identifier: Apache-2.0

package severity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

func TestCompareLevels(t *testing.T) {
	ordered := append([]v1alpha1.SeverityLevel{""}, levels...)
	for i, a := range ordered {
		for j, b := range ordered {
			got := severity.CompareLevels(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: got %d", a, b, got)
			}
		}
	}
	if severity.CompareLevels("Fatal", v1alpha1.SeverityInfo) >= 0 {
		t.Error("an unknown level is not the mildest")
	}
}

func TestFloor(t *testing.T) {
	type floors struct{ production, staging v1alpha1.SeverityLevel }
	want := map[v1alpha1.FindingClass]floors{
		v1alpha1.ClassObjectMissing:    {"Critical", "High"},
		v1alpha1.ClassContainerMissing: {"Critical", "High"},
		v1alpha1.ClassImageRepository:  {"Critical", "High"},
		v1alpha1.ClassObjectUnexpected: {"High", "Medium"},
		v1alpha1.ClassImageVersion:     {"High", "Medium"},
		v1alpha1.ClassExecution:        {"High", "Medium"},
		v1alpha1.ClassSecurity:         {"High", "Medium"},
		v1alpha1.ClassNetworking:       {"Medium", "Low"},
		v1alpha1.ClassStorage:          {"Medium", "Low"},
		v1alpha1.ClassScale:            {"Medium", "Low"},
		v1alpha1.ClassResources:        {"Low", "Info"},
		v1alpha1.ClassOther:            {"Low", "Info"},
		v1alpha1.ClassTemplateMetadata: {"Info", "Info"},
		"NewerClass":                   {"Low", "Info"},
	}
	if len(want) != len(classes)+1 {
		t.Errorf("the table has %d classes, there are %d", len(want)-1, len(classes))
	}
	for class, floor := range want {
		got := map[v1alpha1.Criticality]v1alpha1.SeverityLevel{}
		for _, criticality := range append(criticalities, "", "Edge") {
			got[criticality] = severity.Floor(class, criticality)
		}
		if diff := cmp.Diff(map[v1alpha1.Criticality]v1alpha1.SeverityLevel{
			"Production": floor.production, "Staging": floor.staging, "Development": "", "Other": "", "": "", "Edge": "",
		}, got); diff != "" {
			t.Errorf("floors of %s (-want +got):\n%s", class, diff)
		}
	}
}

// TestScore_LevelIsBandOrFloor, whichever is higher.
func TestScore_LevelIsBandOrFloor(t *testing.T) {
	cases := map[string]struct {
		in   severity.Input
		want v1alpha1.Severity
	}{
		"a container that has just gone is Critical in production by its floor": {
			severity.Input{DriftType: v1alpha1.DriftMissing, Class: v1alpha1.ClassContainerMissing, Criticality: v1alpha1.CriticalityProduction},
			v1alpha1.Severity{Level: "Critical", Score: 61, Floor: "Critical"},
		},
		"the same in staging is one level lower": {
			severity.Input{DriftType: v1alpha1.DriftMissing, Class: v1alpha1.ClassContainerMissing, Criticality: v1alpha1.CriticalityStaging},
			v1alpha1.Severity{Level: "High", Score: 53, Floor: "High"},
		},
		"in development the score alone counts": {
			severity.Input{DriftType: v1alpha1.DriftMissing, Class: v1alpha1.ClassContainerMissing, Criticality: v1alpha1.CriticalityDevelopment},
			v1alpha1.Severity{Level: "Medium", Score: 45},
		},
		"an old change of a label is above its floor": {
			severity.Input{DriftType: v1alpha1.DriftOther, Class: v1alpha1.ClassTemplateMetadata, Criticality: v1alpha1.CriticalityProduction, Age: 24 * time.Hour},
			v1alpha1.Severity{Level: "Medium", Score: 56, Floor: "Info"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Urgency = v1alpha1.UrgencyNormal
			got := severity.Score(tc.in)
			got.Factors = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("severity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorst(t *testing.T) {
	rate := func(level v1alpha1.SeverityLevel, score int32, first v1alpha1.SeverityLevel) v1alpha1.Severity {
		return v1alpha1.Severity{Level: level, Score: score, First: first}
	}
	cases := map[string]struct {
		in   []v1alpha1.Severity
		want *v1alpha1.Severity
	}{
		"no finding has no severity": {},
		"one finding is its own":     {[]v1alpha1.Severity{rate("Low", 20, "")}, new(rate("Low", 20, ""))},
		"the level goes before the score": {
			[]v1alpha1.Severity{rate("Medium", 60, ""), rate("Critical", 50, "")}, new(rate("Critical", 50, "")),
		},
		"within a level the score decides": {
			[]v1alpha1.Severity{rate("High", 70, ""), rate("High", 77, ""), rate("High", 71, "")}, new(rate("High", 77, "")),
		},
		"of equals the first is taken": {
			[]v1alpha1.Severity{rate("High", 70, "Low"), rate("High", 70, "High")}, new(rate("High", 70, "Low")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, severity.Worst(tc.in...)); diff != "" {
				t.Errorf("worst (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorst_IsACopy(t *testing.T) {
	in := []v1alpha1.Severity{severity.Score(mildest)}
	severity.Worst(in...).Factors[0].Score = 99
	if in[0].Factors[0].Score == 99 {
		t.Error("a change of the result changed the finding's severity")
	}
}

// TestWorst_HidesNoUrgency: an object is urgent when any of its findings is, and
// no finding is more severe than the object.
func TestWorst_HidesNoUrgency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []v1alpha1.Severity
		urgent := false
		for range rapid.IntRange(1, 6).Draw(t, "findings") {
			s := severity.Score(draw(t).input())
			urgent = urgent || s.Urgency == v1alpha1.UrgencyImmediate
			all = append(all, s)
		}
		worst := *severity.Worst(all...)
		for _, s := range all {
			if severity.Compare(s, worst) > 0 {
				t.Fatalf("%s %d is worse than the worst, %s %d", s.Level, s.Score, worst.Level, worst.Score)
			}
		}
		if urgent != (worst.Urgency == v1alpha1.UrgencyImmediate) {
			t.Fatalf("urgency: findings %v, object %s", urgent, worst.Urgency)
		}
	})
}
