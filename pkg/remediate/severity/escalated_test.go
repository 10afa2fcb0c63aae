// SPDX-License-Identifier: Apache-2.0

package severity_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// since gives a later severity the first values of an earlier one.
func since(first, now v1alpha1.Severity) *v1alpha1.Severity {
	now.First, now.FirstScore = first.Level, &first.Score
	return &now
}

// In production a floor holds the level of a changed image at High from the first minute,
// so the level alone never rose.
func TestAnImageOfProductionEscalatesAlthoughAFloorHoldsItsLevel(t *testing.T) {
	at := func(age time.Duration) v1alpha1.Severity {
		return severity.Score(severity.Input{
			DriftType: v1alpha1.DriftImage, Class: v1alpha1.ClassImageVersion, Criticality: v1alpha1.CriticalityProduction, Age: age,
		})
	}
	first := at(0)
	for age, want := range map[time.Duration]bool{0: false, 59 * time.Minute: false, time.Hour: true, 25 * time.Hour: true} {
		now := since(first, at(age))
		if now.Level != now.First {
			t.Fatalf("the floor no longer holds the level: %s at first, %s after %s", now.First, now.Level, age)
		}
		if got := severity.Escalated(now); got != want {
			t.Errorf("after %s, with a score of %d since %d, it has escalated: %t", age, now.Score, *now.FirstScore, got)
		}
	}
}

func TestWithoutAFirstScoreTheLevelDecides(t *testing.T) {
	s := v1alpha1.Severity{Level: v1alpha1.SeverityHigh, Score: 99, First: v1alpha1.SeverityHigh}
	if severity.Escalated(&s) {
		t.Error("a drift of an earlier release escalates by a score of which nothing is known")
	}
	if s.First = v1alpha1.SeverityMedium; !severity.Escalated(&s) {
		t.Error("a level that rises is no escalation")
	}
}

// A floor hides no worsening: what escalates where no floor applies, by score alone,
// escalates with any floor, and what did not become worse escalates with none.
func TestNoFloorHidesAWorsening(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		b.class = a.class // the floor stays where it is
		if rapid.Bool().Draw(t, "same environment") {
			b.criticality = a.criticality
		}
		first, now := severity.Score(a.input()), severity.Score(b.input())
		worse := severity.CompareLevels(severity.Band(now.Score), severity.Band(first.Score)) > 0
		if got := severity.Escalated(since(first, now)); worse && !got {
			t.Fatalf("from %s (%d) to %s (%d) does not escalate", first.Level, first.Score, now.Level, now.Score)
		} else if got && !worse && severity.CompareLevels(now.Level, first.Level) <= 0 {
			t.Fatalf("from %s (%d) to %s (%d) escalates", first.Level, first.Score, now.Level, now.Score)
		}
		older := a
		older.minutes += rapid.IntRange(0, 2000).Draw(t, "later")
		aged := since(first, severity.Score(older.input()))
		further := older
		further.minutes += rapid.IntRange(0, 2000).Draw(t, "further")
		if severity.Escalated(aged) && !severity.Escalated(since(first, severity.Score(further.input()))) {
			t.Fatal("a drift that grows older no longer escalates")
		}
	})
}
