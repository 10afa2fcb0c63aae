// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// lookedAtLedgers is a run that has looked at ledgers that have begun.
func lookedAtLedgers(w *world) *run {
	w.Helper()
	r := looked(w)
	if brakes := r.look(w.Context()); !brakes.Known || brakes.Halted != "" {
		w.Fatalf("brakes: %+v", brakes)
	}
	return r
}

// countLedgerReads counts the reads of ledgers, and of what says whether they may grant.
func countLedgerReads(w *world) *atomic.Int32 {
	var reads atomic.Int32
	w.fails = func(call, _ string) error {
		if call == "get RemediationLedger" || call == "get Environment" {
			reads.Add(1)
		}
		return nil
	}
	return &reads
}

// others has steps of other plans take places of the Environment.
func others(w *world, r *run, n int) []ledger.Step {
	w.Helper()
	var steps []ledger.Step
	for i := range n {
		step := ledger.Step{Namespace: "shop", PlanName: fmt.Sprint("other-", i), PlanUID: fmt.Sprint("uid-other-", i)}
		steps = append(steps, step)
		err := w.change(w.Context(), "production", func(s *ledger.Status) *ledger.Status {
			next, verdict := ledger.Reserve(s, ledger.Request{Step: step, PolicyUID: policyUID, TargetUID: step.PlanUID, Epoch: 1}, r.places()[1].rules, w.clock.Now())
			if !verdict.Granted {
				w.Fatalf("it is refused: %+v", verdict.Refused)
			}
			return next
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return steps
}

func TestAStepTakesItsPlacesInTheLedgersAsTheLastLookReadThem(t *testing.T) {
	w := newWorld(t)
	r := lookedAtLedgers(w)
	reads := countLedgerReads(w)
	if place := r.reserve(w.Context(), 0); place.Granted != protocol.Yes {
		t.Errorf("the place is %+v", place)
	}
	if err := r.settle(w.Context(), 0, v1alpha1.LedgerSucceeded); err != nil {
		t.Error(err)
	}
	if n := reads.Load(); n != 0 {
		t.Errorf("ledgers and Environment were read %d times", n)
	}
	const own = "production-1 uid-web Succeeded"
	if diff := cmp.Diff(map[string]string{ClusterLedger: own, "production": own}, w.entries()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestALedgerThatChangedSinceTheLastLookIsReadAgain(t *testing.T) {
	const own = "production-1 uid-web open"
	tests := map[string]struct {
		before int // places that others have at the last look
		since  func(*world, *run, []ledger.Step)
		want   string
	}{
		"another step has taken a place": {
			since: func(w *world, r *run, _ []ledger.Step) { others(w, r, 1) },
			want:  "other-0 uid-other-0 open, " + own,
		},
		"other steps have taken all places": {
			since: func(w *world, r *run, _ []ledger.Step) { others(w, r, 2) },
			want:  "other-0 uid-other-0 open, other-1 uid-other-1 open",
		},
		"another step has given its place back": {
			before: 2,
			since: func(w *world, r *run, steps []ledger.Step) {
				err := w.change(w.Context(), "production", func(s *ledger.Status) *ledger.Status {
					next, _ := ledger.Release(s, steps[0], 1)
					return next
				})
				if err != nil {
					w.Fatal(err)
				}
			},
			want: "other-1 uid-other-1 open, " + own,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := looked(w)
			steps := others(w, r, tc.before)
			r.look(w.Context())
			tc.since(w, r, steps)
			r.reserve(w.Context(), 0)
			if diff := cmp.Diff(tc.want, w.entries()["production"]); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// A run before this one may have taken the place after this one has looked.
func TestAPlaceThatWasTakenSinceTheLastLookIsGivenBack(t *testing.T) {
	w := newWorld(t)
	r := lookedAtLedgers(w)
	earlier := w.open()
	earlier.look(w.Context())
	earlier.reserve(w.Context(), 0)
	if err := r.release(w.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{ClusterLedger: "", "production": ""}, w.entries()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestALedgerIsWrittenAsItWasLookedAtOnlyWhenItMayGrant(t *testing.T) {
	tests := map[string]struct {
		change func(*run)
		want   bool
	}{
		"the Environment remembers the ledger":       {func(*run) {}, true},
		"no ledger was looked at":                    {func(r *run) { delete(r.ledgers, "production") }, false},
		"the ledger has not begun":                   {func(r *run) { r.ledgers["production"].Status.Sequence = 0 }, false},
		"the ledger has another scope":               {func(r *run) { r.ledgers["production"].Spec.Scope = scopeCluster }, false},
		"a person says that the ledger may grant":    {func(r *run) { r.ledgers["production"].Spec.Override = &v1alpha1.LedgerOverride{} }, false},
		"the Environment was not read":               {func(r *run) { r.environment = nil }, false},
		"another Environment was read":               {func(r *run) { r.environment.Name = "staging" }, false},
		"the Environment remembers another ledger":   {func(r *run) { r.environment.Status.LedgerUID = "other" }, false},
		"the Environment remembers no ledger so far": {func(r *run) { r.environment.Status.LedgerUID = "" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := lookedAtLedgers(newWorld(t))
			tc.change(r)
			if got := r.looked("production") != nil; got != tc.want {
				t.Errorf("the ledger is written as it was looked at: %t", got)
			}
		})
	}
}
