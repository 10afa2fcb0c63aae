// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

var (
	allReasons     = []Reason{Full, Partial, Expired, NoExecution, MetricsTimedOut, SpecDrift, AlertDecayTimeout}
	allIntegrities = []Integrity{IntegrityUnknown, SpecUnchanged, SpecDrifted}
)

func assessed(score int32) Component { return Component{State: Assessed, Score: &score} }

func bad() Component { return Component{State: Assessed, Score: new(int32(0)), Bad: true} }

func TestScoreAndVerdict(t *testing.T) {
	noPods := Component{State: Assessed}
	off, away := Component{State: NotConfigured}, Component{State: NotAnswered}
	tests := map[string]struct {
		reason    Reason
		integrity Integrity
		c         Components
		score     int32 // -1 for none
		verdict   Verdict
	}{
		"all is well":                                       {Full, SpecUnchanged, Components{assessed(10_000), assessed(10_000), assessed(8_318)}, 9_580, Effective},
		"health alone is configured":                        {Full, SpecUnchanged, Components{assessed(10_000), off, off}, 10_000, Effective},
		"half of the pods are ready":                        {Full, SpecUnchanged, Components{assessed(5_000), off, off}, 5_000, Inconclusive},
		"no pod is ready":                                   {Full, SpecUnchanged, Components{bad(), off, off}, 0, Ineffective},
		"a kind without pods":                               {Full, SpecUnchanged, Components{noPods, off, off}, -1, Effective},
		"a kind without pods, whose alert fires":            {Full, SpecUnchanged, Components{noPods, bad(), off}, 0, Ineffective},
		"the alert fires, and all else is well":             {Full, SpecUnchanged, Components{assessed(10_000), bad(), assessed(10_000)}, 6_500, Ineffective},
		"a metric is worse, and all else is well":           {Full, SpecUnchanged, Components{assessed(10_000), assessed(10_000), bad()}, 7_500, Ineffective},
		"the metrics did not answer in time":                {MetricsTimedOut, SpecUnchanged, Components{assessed(10_000), assessed(10_000), away}, 10_000, Effective},
		"the alerts did not answer in time":                 {Partial, SpecUnchanged, Components{assessed(10_000), away, assessed(10_000)}, 10_000, Effective},
		"the health did not answer in time":                 {Partial, SpecUnchanged, Components{away, assessed(10_000), assessed(10_000)}, 10_000, Inconclusive},
		"nothing answered in time":                          {Expired, SpecUnchanged, Components{away, away, away}, -1, Inconclusive},
		"the alert decays until the deadline":               {AlertDecayTimeout, SpecUnchanged, Components{assessed(10_000), bad(), assessed(10_000)}, 6_500, Inconclusive},
		"another writer changed it, and all was well":       {SpecDrift, SpecDrifted, Components{assessed(10_000), assessed(10_000), assessed(10_000)}, 0, Invalidated},
		"nothing was written":                               {NoExecution, IntegrityUnknown, Components{}, -1, Inconclusive},
		"whether it is in effect is not known":              {Full, IntegrityUnknown, Components{assessed(10_000), off, off}, 10_000, Inconclusive},
		"a reason of a later version":                       {"Later", SpecUnchanged, Components{assessed(10_000), off, off}, -1, Inconclusive},
		"defect 4: drift is told although alerts were open": {SpecDrift, SpecDrifted, Components{assessed(10_000), away, away}, 0, Invalidated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			score := int32(-1)
			if got := ScoreOf(tc.reason, &tc.c); got != nil {
				score = *got
			}
			if verdict := VerdictOf(tc.reason, tc.integrity, &tc.c); score != tc.score || verdict != tc.verdict {
				t.Errorf("got %d and %s", score, verdict)
			}
		})
	}
}

func drawComponents(t *rapid.T) *Components {
	draw := func(name string) Component {
		c := Component{State: rapid.SampledFrom([]State{NotAssessed, Assessed, NotConfigured, NotAnswered}).Draw(t, name)}
		if c.State == Assessed && rapid.Bool().Draw(t, name+" has a score") {
			c.Score, c.Bad = new(rapid.Int32Range(0, Best).Draw(t, name+" score")), rapid.Bool().Draw(t, name+" is bad")
		}
		return c
	}
	return &Components{draw("health"), draw("alerts"), draw("metrics")}
}

// TestScoreIsThatOfTheNaiveTwin computes with fractions.
func TestScoreIsThatOfTheNaiveTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawComponents(t)
		reason := rapid.SampledFrom(allReasons).Draw(t, "reason")
		var want *int32
		sum, weights := new(big.Rat), new(big.Rat)
		for i, component := range []Component{c.Health, c.Alerts, c.Metrics} {
			weight := []*big.Rat{big.NewRat(40, 100), big.NewRat(35, 100), big.NewRat(25, 100)}[i]
			if component.State == Assessed && component.Score != nil {
				weights.Add(weights, weight)
				if !component.Bad {
					sum.Add(sum, new(big.Rat).Mul(weight, big.NewRat(int64(*component.Score), 1)))
				}
			}
		}
		switch {
		case reason == SpecDrift:
			want = new(int32(0))
		case reason != NoExecution && weights.Sign() > 0:
			mean := sum.Quo(sum, weights)
			mean.Add(mean, big.NewRat(1, 2))
			want = new(int32(new(big.Int).Quo(mean.Num(), mean.Denom()).Int64())) //nolint:gosec // at most Best
		}
		got := ScoreOf(reason, c)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Fatalf("got %v, want %v of %+v", got, want, c)
		}
	})
}

// The verdict is total, and no score says otherwise than the verdict.
func TestVerdictAndScoreNeverContradictEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawComponents(t)
		reason, integrity := rapid.SampledFrom(allReasons).Draw(t, "reason"), rapid.SampledFrom(allIntegrities).Draw(t, "integrity")
		score, verdict := ScoreOf(reason, c), VerdictOf(reason, integrity, c)
		switch verdict {
		case Effective:
			if integrity != SpecUnchanged || c.Health.State != Assessed || score != nil && *score < effectiveFrom {
				t.Fatalf("effective with %v, %s, %+v", score, integrity, c)
			}
		case Ineffective:
			if integrity != SpecUnchanged || score != nil && *score >= effectiveFrom {
				t.Fatalf("ineffective with %v, %s, %+v", score, integrity, c)
			}
		case Invalidated:
			if reason != SpecDrift && integrity != SpecDrifted {
				t.Fatalf("invalidated with %s, %s", reason, integrity)
			}
		case Inconclusive:
		default:
			t.Fatalf("the verdict is %q", verdict)
		}
	})
}
