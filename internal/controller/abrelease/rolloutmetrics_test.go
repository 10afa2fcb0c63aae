// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// measured is a world with metrics, whose process leads until resign is called.
func measured(t *testing.T) (w *world, registry *prometheus.Registry, resign func()) {
	t.Helper()
	w, _ = rolling(t)
	registry = prometheus.NewRegistry()
	var err error
	if w.Metrics, err = NewRolloutMetrics(registry); err != nil {
		t.Fatal(err)
	}
	return w, registry, w.Metrics.lead(w.clock)
}

// sample is the value of a metric with one label at most.
func sample(t *testing.T, registry *prometheus.Registry, name, value string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() != name || value != "" && m.GetLabel()[0].GetValue() != value {
				continue
			}
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("there is no %s of %q", name, value)
	return 0
}

func wantSample(t *testing.T, registry *prometheus.Registry, name, value string, want float64) {
	t.Helper()
	if got := sample(t, registry, name, value); got != want {
		t.Errorf("%s of %q is %v, want %v", name, value, got, want)
	}
}

func TestEachLabelValueIsThereFromTheStart(t *testing.T) {
	_, registry, resign := measured(t)
	resign()
	for name, want := range map[string]int{
		"plumbline_release_runs": len(rollout.RunStates()), "plumbline_release_waiting": len(rollout.WaitReasons()), "plumbline_release_overdue": len(rollout.WaitReasons()),
		"plumbline_release_stages_total": 3, "plumbline_release_verdicts_total": 5, "plumbline_release_verdict_duration_seconds": 2,
		"plumbline_release_rollback_duration_seconds": 1, "plumbline_release_checkpoint_bytes": 1,
		"plumbline_release_cells_total": 2, "plumbline_release_gaps_total": 1, "plumbline_release_gate_answers_total": 8,
	} {
		if got, err := testutil.GatherAndCount(registry, name); err != nil || got != want {
			t.Errorf("%s has %d series, want %d: %v", name, got, want, err)
		}
	}
}

func TestAFailedStageIsCountedOnce(t *testing.T) {
	w, registry, _ := measured(t)
	w.looks()
	wantSample(t, registry, "plumbline_release_runs", "Running", 1)
	for n := range uint64(4) {
		w.tells(n+1, 50)
		w.look()
	}
	w.looks()
	w.looks()
	wantSample(t, registry, "plumbline_release_stages_total", "failed", 1)
	wantSample(t, registry, "plumbline_release_verdicts_total", "Fail", 1)
	wantSample(t, registry, "plumbline_release_verdict_duration_seconds", "Fail", 1)
	wantSample(t, registry, "plumbline_release_rollback_duration_seconds", "", 1)
	wantSample(t, registry, "plumbline_release_runs", "RolledBack", 1)
	wantSample(t, registry, "plumbline_release_runs", "Running", 0)
	wantSample(t, registry, "plumbline_release_waiting", "RevisionRejected", 1)
	if sample(t, registry, "plumbline_release_checkpoint_bytes", "") == 0 {
		t.Error("the checkpoint has no bytes")
	}
}

// refusing refuses each write of a status while it is true.
func (w *world) refusing(refuses *bool) {
	under, is := w.Client.(client.WithWatch)
	if !is {
		w.Fatal("the client is no fake")
	}
	w.Client = interceptor.NewClient(under, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			if *refuses {
				return apierrors.NewConflict(schema.GroupResource{Resource: "abreleases"}, object.GetName(), nil)
			}
			return c.SubResource(sub).Update(ctx, object, opts...)
		},
	})
}

func TestAConflictCountsNothing(t *testing.T) {
	w, registry, _ := measured(t)
	refuses := false
	w.refusing(&refuses)
	w.looks()
	refuses = true
	for n := range uint64(4) {
		w.tells(n+1, 50)
		w.look()
	}
	wantSample(t, registry, "plumbline_release_stages_total", "failed", 0)
	refuses = false
	w.looks()
	wantSample(t, registry, "plumbline_release_stages_total", "failed", 1)
}

func TestAWaitPastItsDeadlineIsOverdue(t *testing.T) {
	w, registry, _ := measured(t)
	for range 12 {
		w.clock.Step(time.Minute)
		w.look()
	}
	wantSample(t, registry, "plumbline_release_waiting", "NoData", 1)
	wantSample(t, registry, "plumbline_release_overdue", "NoData", 0)
	wantSample(t, registry, "plumbline_release_verdicts_total", "NoData", 1)
	w.clock.Step(time.Hour)
	wantSample(t, registry, "plumbline_release_overdue", "NoData", 1)
}

func TestGaugesForgetReleases(t *testing.T) {
	for name, forget := range map[string]func(w *world, resign func()){
		"that were deleted": func(w *world, _ func()) {
			key := types.NamespacedName{Namespace: "shop", Name: "web"}
			var r v1alpha1.ABRelease
			if err := w.Client.Get(w.Context(), key, &r); err != nil {
				w.Fatal(err)
			}
			if err := w.Client.Delete(w.Context(), &r); err != nil {
				w.Fatal(err)
			}
			for range 3 { // it is held until its requests have returned
				if _, err := w.Reconcile(w.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					w.Fatal(err)
				}
			}
		},
		"that have no rollout any more": func(w *world, _ func()) {
			w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout = nil })
			w.looks()
		},
		"when the lead is lost, and looks that end late change nothing": func(w *world, resign func()) {
			resign()
			w.looks()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, registry, resign := measured(t)
			w.looks()
			wantSample(t, registry, "plumbline_release_runs", "Running", 1)
			forget(w, resign)
			wantSample(t, registry, "plumbline_release_runs", "Running", 0)
			wantSample(t, registry, "plumbline_release_checkpoint_bytes", "", 0)
		})
	}
}

func TestNoMetricsTellNothing(t *testing.T) {
	w, _ := rolling(t)
	w.Metrics.lead(w.clock)()
	if r := w.looks(); !strings.Contains(r.Status.Split, "90") {
		t.Errorf("in force is %q", r.Status.Split)
	}
}
