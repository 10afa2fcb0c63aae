// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals"
)

// workloads have the revisions that a test wants.
type workloads struct {
	*world
	revisions map[string]string
	err       error
}

// Read implements Revisions.
func (a *workloads) Read(_ context.Context, workload traffic.Workload, _ []string) (rollout.Arm, error) {
	hash := a.revisions[workload.Name]
	return rollout.Arm{Revision: rollout.Revision{Hash: hash, Image: "shop:" + hash}, Labels: map[string]string{"workload": workload.Name}, Targets: 1, Updated: 1}, a.err
}

// rolling is a world whose release goes by stages of 10 and 100 percent.
func rolling(t *testing.T) (*world, *workloads) {
	t.Helper()
	w := newWorld(t)
	a := &workloads{world: w, revisions: map[string]string{"web": "1", "canary": "2"}}
	w.Revisions, w.Orders = a, &given{}
	w.ready = map[string]int{"stable": 4, "canary": 4}
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.TrafficSplit.Percentages = map[string]v1alpha1.Percentage{"stable": v1alpha1.Percent(100), "canary": v1alpha1.Percent(0)}
		r.Spec.Rollout = &v1alpha1.Rollout{Strategy: &v1alpha1.RolloutStrategySpec{Stages: []v1alpha1.RolloutStage{
			{TrafficPercentage: new(v1alpha1.Percent(10)), Duration: &metav1.Duration{Duration: time.Minute}},
			{TrafficPercentage: new(v1alpha1.Percent(100)), Duration: &metav1.Duration{}},
		}}}
	})
	return w, a
}

// tells has both variations tell counts of ten seconds, in the split that is in force.
func (w *world) tells(number uint64, failedOfCanary uint64) {
	w.clock.Step(10 * time.Second)
	w.router.Count(w.cell("stable", 2*number-1, 900, 2), w.cell("canary", 2*number, 100, failedOfCanary))
}

// tellsAll does so beside a fresh control. The stable variation has no failures.
func (w *world) tellsAll(number, failedOfCanary, failedOfControl uint64) {
	w.clock.Step(10 * time.Second)
	w.router.Count(w.cell("stable", 3*number-2, 800, 0), w.cell("canary", 3*number-1, 100, failedOfCanary), w.cell("fresh-control", 3*number, 100, failedOfControl))
}

func (w *world) cell(variation string, position, over, failed uint64) traffic.Cell {
	return traffic.Cell{
		Part: "a", Position: traffic.Position{Epoch: 1, Cell: position}, Variation: variation, Port: 80, Sequence: w.router.Current().Sequence,
		Start: w.clock.Now().Add(-10 * time.Second), From: w.clock.Now().Add(-10 * time.Second), To: w.clock.Now(), Over: over, Failed: failed,
		Latency: make([]uint64, signals.Buckets), Spread: traffic.Spread{Proxies: 1, N: over, X: failed, NN: float64(over * over), XN: float64(over * failed), XX: float64(failed * failed)},
		Coverage: traffic.Coverage{Expected: 1, Telling: 1},
	}
}

func TestAGoodRevisionGetsAllRequests(t *testing.T) {
	w, a := rolling(t)
	r := w.looks()
	if r.Status.Split != "stable 90 / canary 10" || r.Status.ActiveVariation != "stable" {
		t.Fatalf("in force is %q, and active %q: %+v", r.Status.Split, r.Status.ActiveVariation, r.Status.Rollout)
	}
	for n := range uint64(12) {
		w.tells(n+1, 0)
		w.look()
	}
	r = w.looks()
	if r.Status.ActiveVariation != "canary" || r.Status.Split != "canary 100 / stable 0" || r.Status.Rollout.Run.State != "Completed" {
		t.Fatalf("in force is %q, and active %q: %+v", r.Status.Split, r.Status.ActiveVariation, r.Status.Rollout)
	}
	sequence := r.Status.Effective.Sequence
	if again := w.looks(); again.Status.Effective.Sequence != sequence {
		t.Errorf("the sequence goes on to %d", again.Status.Effective.Sequence)
	}
	a.revisions["web"] = "3"
	w.look()
	if r = w.looks(); r.Status.Split != "canary 90 / stable 10" || r.Status.Rollout.Run.Number != 2 {
		t.Errorf("a new revision of what is inactive: in force is %q in run %d", r.Status.Split, r.Status.Rollout.Run.Number)
	}
	if said := w.said(); !slices.ContainsFunc(said, func(e string) bool { return strings.Contains(e, "Starting canary stage 1: 10%") }) {
		t.Errorf("people are told %q", said)
	}
}

// A verdict acts whatever else is wrong: with a spec that cannot be carried out, with workloads that
// cannot be read, in a pause.
func TestABadRevisionIsRolledBack(t *testing.T) {
	for name, breaks := range map[string]func(*world, *workloads){
		"by its errors":                     func(*world, *workloads) {},
		"while its workload cannot be read": func(_ *world, a *workloads) { a.err = errors.New("forbidden") },
		"in a pause": func(w *world, _ *workloads) {
			w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Pause = v1alpha1.Enabled })
		},
		"with a spec that was made invalid": func(w *world, _ *workloads) {
			w.edit(func(r *v1alpha1.ABRelease) { r.Spec.TrafficSplit.Type = "Other" })
		},
		"with a strategy that is gone": func(w *world, _ *workloads) {
			w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Strategy, r.Spec.Rollout.StrategyName = nil, "gone" })
		},
		"by another process, which reads the checkpoint": func(w *world, _ *workloads) { w.written = memory{} },
	} {
		t.Run(name, func(t *testing.T) {
			w, a := rolling(t)
			w.looks()
			w.tells(1, 0)
			w.look()
			w.tells(2, 50)
			w.look()
			breaks(w, a)
			for n := range uint64(4) {
				w.tells(n+3, 50)
				w.look()
			}
			r := w.looks()
			if r.Status.Split != "stable 100 / canary 0" || r.Status.Rollout.Run.State != "RolledBack" || r.Status.Rollout.Run.Reason != "StageFailed" {
				t.Fatalf("in force is %q: %+v, %+v", r.Status.Split, r.Status.Rollout.Run, r.Status.Rollout.Analysis)
			}
			if len(r.Status.Rollout.Rejected) != 1 {
				t.Errorf("rejected are %+v", r.Status.Rollout.Rejected)
			}
		})
	}
}

// A retry began with the failures of the run before, and was rolled back at once.
func TestARetryIsNotJudgedByTheRunBefore(t *testing.T) {
	w, _ := rolling(t)
	w.looks()
	for n := range uint64(4) {
		w.tells(n+1, 50)
		w.look()
	}
	if r := w.looks(); r.Status.Rollout.Run.State != "RolledBack" {
		t.Fatalf("the run is %+v", r.Status.Rollout.Run)
	}
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Control = &v1alpha1.RolloutControl{Verb: "Retry", Run: 1, RequestedBy: "ann"}
	})
	w.looks()
	w.tells(5, 0)
	w.look()
	w.tells(6, 0)
	if r := w.looks(); r.Status.Rollout.Run.Number != 2 || r.Status.Rollout.Run.State != "Running" || r.Status.Split != "stable 90 / canary 10" {
		t.Errorf("in force is %q: %+v", r.Status.Split, r.Status.Rollout.Run)
	}
}

func TestWithoutCountsNothingMovesForward(t *testing.T) {
	w, _ := rolling(t)
	w.looks()
	for range 12 {
		w.clock.Step(time.Minute)
		w.look()
	}
	r := w.looks()
	if r.Status.Split != "stable 90 / canary 10" || r.Status.Rollout.Waiting == nil || r.Status.Rollout.Waiting.Reason != "NoData" {
		t.Errorf("in force is %q, and the run waits for %+v", r.Status.Split, r.Status.Rollout.Waiting)
	}
}

func TestAnInstallationWithoutRolloutsSaysSo(t *testing.T) {
	w, _ := rolling(t)
	w.Revisions = nil
	r := w.looks()
	for _, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ConditionProgressing && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "delivery.enabled") {
			return
		}
	}
	t.Errorf("the conditions are %+v", r.Status.Conditions)
}

// TestADamagedCheckpointBeginsTheMeasurementAnew damages what a leader has stored of its counts. A good
// revision is not rolled back by it, and a bad one is all the same.
func TestADamagedCheckpointBeginsTheMeasurementAnew(t *testing.T) {
	for name, damage := range map[string]func(checkpoint string) string{
		"cut short":        func(c string) string { return c[:len(c)/2] },
		"of other letters": func(string) string { return "????" },
		"empty":            func(string) string { return "" },
		"of a later form":  func(string) string { return "/w==" },
	} {
		for revision, failed := range map[string]uint64{"good": 0, "bad": 50} {
			t.Run(name+", of a "+revision+" revision", func(t *testing.T) {
				w, _ := rolling(t)
				w.looks()
				w.tells(1, 0)
				w.clock.Step(time.Minute) // the checkpoint is stored now and then
				r := w.look()
				if r.Status.Rollout.Analysis == nil || r.Status.Rollout.Analysis.Checkpoint == "" {
					t.Fatalf("nothing is stored: %+v", r.Status.Rollout.Analysis)
				}
				r.Status.Rollout.Analysis.Checkpoint = damage(r.Status.Rollout.Analysis.Checkpoint)
				if err := w.Client.Status().Update(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				for n := range uint64(14) {
					w.tells(n+2, failed)
					w.look()
				}
				want := v1alpha1.RunState("Completed")
				if failed > 0 {
					want = "RolledBack"
				}
				if run := w.looks().Status.Rollout.Run; run.State != want {
					t.Errorf("the run is %s: %s", run.State, run.Message)
				}
			})
		}
	}
}

// A cohort whose visitors are worse than the others has the active variation serve it first, and the judge
// then asks more of a failure.
func TestACohortIsComparedBeforeTheFirstStage(t *testing.T) {
	w, _ := rolling(t)
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.TrafficSplit.Type, r.Spec.TrafficSplit.Sticky = v1alpha1.TrafficSplitSticky, &v1alpha1.Sticky{Cookie: "visitor"}
		r.Spec.Rollout.Analysis = &v1alpha1.RolloutAnalysisSpec{CohortCheck: &metav1.Duration{Duration: time.Minute}}
	})
	r := w.looks()
	if r.Status.Split != "stable 90 / canary 10" || r.Status.Effective.Variations[1].ServedBy != "stable" || r.Status.Rollout.Run.State != "Deploying" {
		t.Fatalf("in force is %q, the canary served by %q: %+v", r.Status.Split, r.Status.Effective.Variations[1].ServedBy, r.Status.Rollout.Run)
	}
	check := r.Status.Effective.Sequence
	for n := range uint64(7) {
		w.tells(n+1, 4) // of a hundred; two of nine hundred others fail
		w.look()
	}
	r = w.looks()
	if run := r.Status.Rollout.Run; run.State != "Running" || run.CohortCheck.CompletionTime == nil || run.CohortCheck.Ratio != "10" {
		t.Fatalf("the run is %+v after the check %+v", run, run.CohortCheck)
	}
	if e := r.Status.Effective; e.Variations[1].ServedBy != "" || e.Sequence <= check || r.Status.Split != "stable 90 / canary 10" {
		t.Errorf("in force is %q with sequence %d, the canary served by %q", r.Status.Split, e.Sequence, e.Variations[1].ServedBy)
	}
	for n := range uint64(14) {
		w.tells(n+8, 4)
		w.look()
	}
	if r = w.looks(); r.Status.Rollout.Run.State == "RolledBack" {
		t.Errorf("the visitors are blamed on the canary: %s", r.Status.Rollout.Run.Message)
	}
}

// A person who skips the check takes the default, and what the check has shown blames no canary.
func TestAPersonSkipsTheCohortCheck(t *testing.T) {
	w, _ := rolling(t)
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.TrafficSplit.Type, r.Spec.TrafficSplit.Sticky = v1alpha1.TrafficSplitSticky, &v1alpha1.Sticky{Cookie: "visitor"}
		r.Spec.Rollout.Analysis = &v1alpha1.RolloutAnalysisSpec{CohortCheck: &metav1.Duration{Duration: time.Hour}}
	})
	w.looks()
	for n := range uint64(7) {
		w.tells(n+1, 40) // of a hundred; two of nine hundred others fail
		w.look()
	}
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Rollout.Control = &v1alpha1.RolloutControl{Verb: "Skip", Run: 1, RequestedBy: "ann"}
	})
	r := w.looks()
	if run := r.Status.Rollout.Run; run.State != "Running" || run.CohortCheck.Skipped != v1alpha1.Enabled || run.CohortCheck.Ratio != "1.5" || r.Status.Rollout.Handled.Refusal != "" {
		t.Fatalf("the run is %+v after the check %+v: %+v", run, run.CohortCheck, r.Status.Rollout.Handled)
	}
	if e := r.Status.Effective; e.Variations[1].ServedBy != "" || r.Status.Split != "stable 90 / canary 10" {
		t.Errorf("in force is %q, the canary served by %q", r.Status.Split, e.Variations[1].ServedBy)
	}
}

// A canary that loses its pods during the check costs no visitor anything: the active variation serves all.
func TestACohortCheckNeedsNoPodOfTheCanary(t *testing.T) {
	w, _ := rolling(t)
	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.TrafficSplit.Type, r.Spec.TrafficSplit.Sticky = v1alpha1.TrafficSplitSticky, &v1alpha1.Sticky{Cookie: "visitor"}
	})
	r := w.looks()
	sequence := r.Status.Effective.Sequence
	w.ready["canary"] = 0
	if r = w.looks(); r.Status.Effective.Sequence != sequence || len(r.Status.Clamped) > 0 {
		t.Errorf("in force is sequence %d, want %d; clamped are %+v", r.Status.Effective.Sequence, sequence, r.Status.Clamped)
	}
	if waits := r.Status.Rollout.Waiting; waits == nil || waits.Reason != "Deployment" {
		t.Errorf("the run waits for %+v", waits)
	}
}
