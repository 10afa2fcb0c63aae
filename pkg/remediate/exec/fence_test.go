// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

func TestAFenceMovesTheVersionAndLeavesARecord(t *testing.T) {
	const moved = "42"
	tests := map[string]struct {
		world  func(*world)
		result protocol.WriteResult
		stored int
	}{
		"it is stored":                          {func(*world) {}, protocol.Stored, 1},
		"it is refused":                         {func(w *world) { w.targets.fails = on("put", apierrors.NewForbidden(deploymentsGR, "web", errNetwork)) }, protocol.Forbidden, 0},
		"another writer was faster":             {func(w *world) { w.targets.fails = on("put", errConflict) }, protocol.Conflicted, 0},
		"it has no answer":                      {func(w *world) { w.targets.lost = on("put", errNetwork) }, protocol.Lost, 1},
		"it moved no version, so it is none":    {func(w *world) { w.targets.still = true }, protocol.Lost, 1},
		"it cannot be recorded, so it is asked": {func(w *world) { w.records.Fault = always(errNetwork) }, protocol.Lost, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			r := w.started(v1alpha1.StepIntent)
			r.plan.Status.Steps[0].Attempts = 2
			r.read(t.Context(), 0)
			test.world(w)
			got := r.fence(t.Context(), 0)
			if got.Result != test.result || len(w.targets.stored) != test.stored {
				t.Errorf("got %+v, stored are %v", got, w.targets.stored)
			}
			records := len(w.records.Names())
			if got.Result == protocol.Stored && (got.ResourceVersion != moved || records != 1) || got.Result != protocol.Stored && records > 0 {
				t.Errorf("it is %+v, with %d records", got, records)
			}
			if got.Result == protocol.Stored {
				record := w.recorded()[0]
				want := evidence.Result{ResourceVersion: moved, Hash: r.target(0).DriftedHash, Origin: evidence.OriginAPIResponse, At: epoch}
				if diff := cmp.Diff(want, record.Result); diff != "" || record.Kind != evidence.KindFence || record.Occurrence != 2 {
					t.Errorf("the record is the %s number %d (-want +got):\n%s", record.Kind, record.Occurrence, diff)
				}
			}
			if got.Result == protocol.Lost && len(w.records.Names()) == 0 && w.records.Fault == nil && w.targets.lost != nil {
				// A process that comes after finds the fence, and records it then.
				w.targets.lost = nil
				if next := w.started(v1alpha1.StepIntent); next.read(t.Context(), 0).ResourceVersion != moved || len(w.records.Names()) != 1 {
					t.Errorf("a fence that was found has %d records", len(w.records.Names()))
				}
			}
		})
	}
	t.Run("an object that cannot be marked is not fenced", func(t *testing.T) {
		w := chained(t)
		r := w.started(v1alpha1.StepIntent)
		if got := r.fence(t.Context(), 0); got.Result != protocol.Refused {
			t.Errorf("got %+v", got)
		}
	})
}

// A fence is found only if it is the step's own, of its intent.
func TestAFenceOfAnotherStepIsNotRecorded(t *testing.T) {
	tests := map[string]struct {
		label, annotation string
		change            func(*v1alpha1.PlanStep)
		records           int
	}{
		"its own":                     {"plan-uid.0", "41", func(*v1alpha1.PlanStep) {}, 1},
		"that of another plan":        {"other.0", "41", func(*v1alpha1.PlanStep) {}, 0},
		"that of another step":        {"plan-uid.1", "41", func(*v1alpha1.PlanStep) {}, 0},
		"that of an earlier intent":   {"plan-uid.0", "40", func(*v1alpha1.PlanStep) {}, 0},
		"one that is stored already":  {"plan-uid.0", "41", func(s *v1alpha1.PlanStep) { s.Fence = "42" }, 0},
		"one of a step without a try": {"plan-uid.0", "41", func(s *v1alpha1.PlanStep) { s.Intent = nil }, 0},
		"one of a step that applied":  {"plan-uid.0", "41", func(s *v1alpha1.PlanStep) { s.State = v1alpha1.StepApplied }, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			w.targets.metadata("web")["labels"] = map[string]any{"plumbline.dev/fence": test.label}
			w.targets.metadata("web")["annotations"] = map[string]any{"plumbline.dev/fenced": test.annotation}
			r := w.started(v1alpha1.StepIntent)
			test.change(&r.plan.Status.Steps[0])
			r.read(t.Context(), 0)
			if got := len(w.records.Names()); got != test.records {
				t.Errorf("%d records, want %d", got, test.records)
			}
		})
	}
}
