// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	scoring "github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// levels from mild to severe.
var levels = []v1alpha1.SeverityLevel{
	v1alpha1.SeverityInfo, v1alpha1.SeverityLow, v1alpha1.SeverityMedium, v1alpha1.SeverityHigh, v1alpha1.SeverityCritical,
}

func drawDrift(t *rapid.T, i int) Drift {
	d := drift(fmt.Sprint("o", i))
	d.Namespace = rapid.SampledFrom([]string{"shop", "billing", "web"}).Draw(t, "namespace")
	d.Managed = rapid.IntRange(0, 9).Draw(t, "managed") > 0
	d.Contended = rapid.IntRange(0, 9).Draw(t, "contended") == 0
	d.Attributed = rapid.IntRange(0, 4).Draw(t, "attributed") > 0
	d.Severity.Level = rapid.SampledFrom(levels).Draw(t, "level")
	d.Severity.Score = int32(rapid.IntRange(0, 100).Draw(t, "score")) //nolint:gosec // small
	d.Severity.Urgency = rapid.SampledFrom([]string{v1alpha1.UrgencyImmediate, v1alpha1.UrgencyNormal}).Draw(t, "urgency")
	d.FirstSeen = epoch.Add(-time.Duration(rapid.IntRange(0, 2000).Draw(t, "minutes")) * time.Minute)
	d.Attempts = rapid.IntRange(0, 3).Draw(t, "attempts")
	return d
}

// Whatever the input: the same plans in whatever order it comes, everything
// drifted in one place, never more than one operation may have, the worst first.
func TestPlansWhateverTheInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "drifts")
		in := input()
		for i := range n {
			in.Drifts = append(in.Drifts, drawDrift(t, i))
		}
		in.Scope.Selected = n + rapid.IntRange(0, 60).Draw(t, "others")
		in.Policy.Spec.Strategy = rapid.SampledFrom([]v1alpha1.RemediationStrategy{v1alpha1.StrategyAllAtOnce, v1alpha1.StrategyStaged, v1alpha1.StrategyRolling}).Draw(t, "strategy")
		in.Policy.Spec.Schedule.Urgent = rapid.SampledFrom([]v1alpha1.Permission{v1alpha1.Allowed, v1alpha1.Forbidden}).Draw(t, "urgent")
		if rapid.Bool().Draw(t, "closed") {
			in.Opening = Opening{Next: epoch.Add(time.Hour)}
		}
		if rapid.Bool().Draw(t, "under way") {
			in.UnderWay = []v1alpha1.RemediationPlan{planOf("other", "x", "y")}
		}
		out := Make(in)
		shuffled := *in
		shuffled.Drifts = rapid.Permutation(in.Drifts).Draw(t, "order")
		if a, b := text(t, out), text(t, Make(&shuffled)); a != b {
			t.Fatalf("in another order (-one +other):\n%s", cmp.Diff(a, b))
		}
		places := map[string]int{}
		targets := 0
		for _, p := range out.Plans {
			steps := map[int32]bool{}
			for _, b := range p.Batches {
				for _, s := range b.Steps {
					steps[s] = true
				}
			}
			if len(steps) != len(p.Targets) || len(p.Targets) > 10 {
				t.Fatalf("%d targets in batches %v", len(p.Targets), p.Batches)
			}
			for _, target := range p.Targets {
				places[p.Namespace+"/"+target.BaselineName]++
				targets++
			}
			if !slices.IsSortedFunc(p.Targets, func(a, b v1alpha1.PlanTarget) int { return scoring.CompareLevels(b.Severity.Level, a.Severity.Level) }) {
				t.Fatalf("not the worst first: %v", p.Targets)
			}
		}
		for _, l := range out.LeftOut {
			places[l.Drift.Namespace+"/"+l.Drift.Baseline]++
		}
		if len(places) != n {
			t.Fatalf("%d of %d drifts have a place", len(places), n)
		}
		for at, count := range places {
			if count != 1 {
				t.Fatalf("%s is in %d places", at, count)
			}
		}
		if targets > max(0, Room(in)) || targets > 10 {
			t.Fatalf("%d targets, %d allowed", targets, Room(in))
		}
		if targets < min(out.Eligible, max(0, Room(in))) {
			t.Fatalf("%d targets, although %d are eligible and %d allowed", targets, out.Eligible, Room(in))
		}
	})
}

func text(t *rapid.T, out Output) string {
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func BenchmarkMakeWithTenThousandDrifts(b *testing.B) {
	in := input()
	for i := range 10_000 {
		d := drift(fmt.Sprint("o", i))
		d.Severity.Score = int32(i % 101) //nolint:gosec // small
		in.Drifts = append(in.Drifts, d)
	}
	in.Scope.Selected = 20_000
	b.ReportAllocs()
	for b.Loop() {
		Make(in)
	}
}
