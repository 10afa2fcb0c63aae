// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// saidOnce is one thing that is said about the period, for the naive twin.
type saidOnce struct {
	rank   int
	period time.Duration
}

// forEver stands for 0s, so that "longer" is "greater".
const forEver = time.Duration(1<<63 - 1)

func lasting(d time.Duration) time.Duration {
	if d == 0 {
		return forEver
	}
	return d
}

// resolveNaively looks at all that is said at once: the lowest rank that is
// there, and of it the shortest, where never is the longest.
func resolveNaively(said []saidOnce, annotation *time.Duration, overrides []v1alpha1.ObjectOverride, wish bool) time.Duration {
	rank, best, nobody := 1000, forEver, true
	for _, s := range said {
		if s.rank < rank {
			rank, best = s.rank, forEver
		}
		if s.rank == rank {
			nobody, best = false, min(best, lasting(s.period))
		}
	}
	floor := best
	if nobody {
		floor = 0
		if wish {
			best = DriftDetectionPeriod
		}
	}
	if annotation != nil && !slices.Contains(overrides, v1alpha1.ObjectOverrideForbidden) && !slices.Contains(overrides, "") {
		asked := lasting(*annotation)
		mayAsk := asked != forEver || !slices.Contains(overrides, v1alpha1.ObjectOverrideLengthen)
		if mayAsk && asked >= floor {
			best = asked
		}
	}
	if best == forEver {
		return 0
	}
	return best
}

func TestResolveAgreesWithAskingEverybodyAtOnce(t *testing.T) {
	periods := []time.Duration{0, time.Second, time.Hour, 3 * time.Hour, 10 * time.Hour, MaxPeriod}
	rapid.Check(t, func(t *rapid.T) {
		var said []saidOnce
		draw := func(name string, rank int) *time.Duration {
			if !rapid.Bool().Draw(t, name+" speaks") {
				return nil
			}
			p := rapid.SampledFrom(periods).Draw(t, name)
			said = append(said, saidOnce{rank, p})
			return &p
		}
		h := Hierarchy{GVK: deployment, Annotations: map[string]string{}}
		var overrides []v1alpha1.ObjectOverride
		for i := range rapid.IntRange(1, 4).Draw(t, "guards") {
			o := rapid.SampledFrom([]v1alpha1.ObjectOverride{"", v1alpha1.ObjectOverrideForbidden, v1alpha1.ObjectOverrideLengthen, v1alpha1.ObjectOverrideLengthen, v1alpha1.ObjectOverrideStop, v1alpha1.ObjectOverrideStop, v1alpha1.ObjectOverrideStop}).Draw(t, "override")
			overrides = append(overrides, o)
			h.Guards = append(h.Guards, guard(fmt.Sprint("g", i), draw("guard", 1), o))
		}
		h.Environment = defaults("env", draw("env default", 4), draw("env kind", 2))
		h.InstallWide = defaults("all", draw("default", 5), draw("kind", 3))
		h.Option = draw("option", 6)
		var annotation *time.Duration
		if rapid.Bool().Draw(t, "annotated") {
			p := rapid.SampledFrom(periods).Draw(t, "annotation")
			annotation, h.Annotations[v1alpha1.AnnotationResyncPeriod] = &p, short(p)
		}
		wish := rapid.Bool().Draw(t, "wish")
		if wish {
			h.Annotations[AnnotationDriftDetection] = "true"
		}

		got := Resolve(h)
		if want := resolveNaively(said, annotation, overrides, wish); got.Period.Value != want {
			t.Fatalf("period %s, want %s; trail %v", got.Period.Value, want, got.Period.Trail)
		}
		checkTrail(t, got.Period)
		slices.Reverse(h.Guards)
		if diff := cmp.Diff(got, Resolve(h)); diff != "" {
			t.Fatalf("the order of guards matters (-one +other):\n%s", diff)
		}
	})
}

// checkTrail: one level decides and says what holds, those above it are silent or
// refused, those below silent or overruled.
func checkTrail(t *rapid.T, a Answer[time.Duration]) {
	decided := false
	for _, step := range a.Trail {
		switch step.Verdict {
		case VerdictDecides:
			if decided || step.Level != a.Level {
				t.Fatalf("%s decides beside %s", step.Level, a.Level)
			}
			decided = true
		case VerdictOverruled:
			if !decided {
				t.Fatalf("%s is overruled by nobody", step.Level)
			}
		case VerdictRefused:
			if decided || step.Problem == nil {
				t.Fatalf("%s is refused without a reason", step.Level)
			}
		case VerdictSilent:
			if len(step.Voices) > 0 {
				t.Fatalf("%s is silent and says %v", step.Level, step.Voices)
			}
		default:
			t.Fatalf("verdict %q", step.Verdict)
		}
	}
	if !decided {
		t.Fatal("nobody decides")
	}
}
