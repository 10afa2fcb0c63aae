// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

var both = []string{ClusterLedger, "production"}

// looked is a run that knows its limits, on ledgers that have begun.
func looked(w *world) *run {
	w.Helper()
	r := w.open()
	if brakes := r.look(w.Context()); !brakes.Known || brakes.Halted != "" {
		w.Fatalf("brakes: %+v", brakes)
	}
	for _, name := range both {
		if _, err := w.readLedger(w.Context(), name); err != nil {
			w.Fatal(err)
		}
	}
	w.calls, w.ledgers = nil, nil
	return r
}

// entries are how the entries of both ledgers stand, each as its outcome, or as
// "open".
func (w *world) entries() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, name := range both {
		var all []string
		for _, e := range w.readLedgerNow(name).Status.Entries {
			state := "open"
			if e.CompletionTime != nil {
				state = string(e.Outcome)
			}
			all = append(all, e.PlanName+" "+e.TargetUID+" "+state)
		}
		out[name] = strings.Join(all, ", ")
	}
	return out
}

func TestAStepTakesAPlaceInBothLedgersOrInNone(t *testing.T) {
	const own = "production-1 uid-web open"
	const full = "MaxConcurrent: 0 of 0 at once (ledger production)"
	fails := func(call, name string) func(*world, *run) {
		return func(w *world, _ *run) {
			w.fails = func(of, at string) error {
				if of == call && (name == "" || at == name) {
					return errNetwork
				}
				return nil
			}
		}
	}
	// shut refuses every step of the policy in the Environment's ledger.
	shut := func(_ *world, r *run) { r.policy.Spec.Safety.MaxConcurrent = 0 }
	tests := map[string]struct {
		world   func(*world, *run)
		want    protocol.Place
		cluster string
		own     string
		writes  int
	}{
		"both grant it": {func(*world, *run) {}, protocol.Place{Granted: protocol.Yes}, own, own, 2},
		"granted before, it is granted again, so that a release of before is not stored": {
			func(w *world, r *run) { r.reserve(w.Context(), 0); w.calls = nil }, protocol.Place{Granted: protocol.Yes}, own, own, 2,
		},
		"granted by the cluster before, the Environment is asked": {
			func(w *world, r *run) {
				if _, err := r.reserveIn(w.Context(), r.places()[0], 0); err != nil {
					w.Fatal(err)
				}
				w.calls = nil
			}, protocol.Place{Granted: protocol.Yes}, own, own, 2,
		},
		"the cluster refuses": {
			func(w *world, _ *run) { w.Caps = ledger.Caps{PerHour: new(int32(0))} },
			protocol.Place{Granted: protocol.No, Refusal: "CapPerHour: 0 of 0 in the last hour (ledger plumbline-cluster)"}, "", "", 0,
		},
		"the Environment refuses, and the cluster is not asked": {shut, protocol.Place{Granted: protocol.No, Refusal: full}, "", "", 0},
		// D9 of the review of remediation: the place leaked when the answer of the run
		// before was lost.
		"the Environment refuses, and the cluster gives back what a run before was granted": {
			func(w *world, r *run) {
				if _, err := r.reserveIn(w.Context(), r.places()[0], 0); err != nil {
					w.Fatal(err)
				}
				shut(w, r)
				w.calls = nil
			}, protocol.Place{Granted: protocol.No, Refusal: full}, "", "", 1,
		},
		"the Environment refuses when the cluster has granted, which forgets it": {
			func(w *world, r *run) { w.ledgerStored = func() { shut(w, r) } }, protocol.Place{Granted: protocol.No, Refusal: full}, "", "", 2,
		},
		"the Environment refuses, and the cluster cannot forget": {
			func(w *world, r *run) {
				w.ledgerStored = func() { shut(w, r); fails("update RemediationLedger", ClusterLedger)(w, r) }
			},
			protocol.Place{Granted: protocol.Unknown, Refusal: "writing ledger plumbline-cluster: connection reset"}, own, "", 2,
		},
		"it has ended, as the ledger knows": {
			func(w *world, r *run) {
				r.reserve(w.Context(), 0)
				if err := r.settle(w.Context(), 0, v1alpha1.LedgerSucceeded); err != nil {
					w.Fatal(err)
				}
				w.calls = nil
			}, protocol.Place{Granted: protocol.No, Ended: true}, "production-1 uid-web Succeeded", "production-1 uid-web Succeeded", 0,
		},
		"no ledger can be read": {
			fails("get RemediationLedger", ""), protocol.Place{Granted: protocol.Unknown, Refusal: "reading ledger production: connection reset"}, "", "", 0,
		},
		"the cluster's ledger cannot be read": {
			fails("get RemediationLedger", ClusterLedger),
			protocol.Place{Granted: protocol.Unknown, Refusal: "reading ledger plumbline-cluster: connection reset"}, "", "", 0,
		},
		"the cluster's ledger cannot be written": {
			fails("update RemediationLedger", ClusterLedger),
			protocol.Place{Granted: protocol.Unknown, Refusal: "writing ledger plumbline-cluster: connection reset"}, "", "", 1,
		},
		"the Environment's ledger cannot be written": {
			fails("update RemediationLedger", "production"),
			protocol.Place{Granted: protocol.Unknown, Refusal: "writing ledger production: connection reset"}, own, "", 2,
		},
		"what is to be made has its Baseline for a name": {
			func(_ *world, r *run) { r.plan.Spec.Plan.Targets[0].UID = "" }, protocol.Place{Granted: protocol.Yes},
			"production-1 shop.deployments.apps.web open", "production-1 shop.deployments.apps.web open", 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := looked(w)
			test.world(w, r)
			if diff := cmp.Diff(test.want, r.reserve(t.Context(), 0)); diff != "" {
				t.Errorf("the place (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{ClusterLedger: test.cluster, "production": test.own}, w.entries()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if writes := w.writes("update RemediationLedger"); len(writes) != test.writes {
				t.Errorf("writes are %v, want %d", writes, test.writes)
			}
		})
	}
}

func TestALedgerThatOthersWriteIsReadAgain(t *testing.T) {
	tests := map[string]struct {
		times int
		err   error
		fails bool
		calls int
	}{
		"overtaken once":            {1, errConflict, false, 2},
		"overtaken seven times":     {7, errConflict, false, conflictTries},
		"overtaken again and again": {-1, errConflict, true, conflictTries},
		"another error":             {1, errNetwork, true, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := looked(w)
			w.times(test.times, "update RemediationLedger", test.err)
			_, err := r.reserveIn(t.Context(), r.places()[0], 0)
			if (err != nil) != test.fails || len(w.writes("update RemediationLedger")) != test.calls {
				t.Errorf("%d writes, and %v", len(w.writes("update RemediationLedger")), err)
			}
			if told := len(w.ledgers) > 0; told == test.fails {
				t.Errorf("the observer was told of %v", w.ledgers)
			}
		})
	}
}

// The cluster's ledger is told last: while the Environment's one holds a step, the
// cluster's does too.
func TestTheEndOfAStepIsToldTheEnvironmentFirst(t *testing.T) {
	settle := func(w *world, r *run) error { return r.settle(w.Context(), 0, v1alpha1.LedgerFailed) }
	release := func(w *world, r *run) error { return r.release(w.Context(), 0) }
	tests := map[string]struct {
		end          func(*world, *run) error
		fails        string
		cluster, own string
		stored       []string
	}{
		"settled in both":                       {settle, "", "production-1 uid-web Failed", "production-1 uid-web Failed", []string{"production", ClusterLedger}},
		"released in both":                      {release, "", "", "", []string{"production", ClusterLedger}},
		"the Environment cannot be told an end": {settle, "production", "production-1 uid-web open", "production-1 uid-web open", nil},
		"the Environment cannot give back":      {release, "production", "production-1 uid-web open", "production-1 uid-web open", nil},
		"the cluster cannot be told an end":     {settle, ClusterLedger, "production-1 uid-web open", "production-1 uid-web Failed", []string{"production"}},
		"the cluster cannot give a place back":  {release, ClusterLedger, "production-1 uid-web open", "", []string{"production"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := looked(w)
			r.reserve(t.Context(), 0)
			w.ledgers = nil
			w.fails = func(call, at string) error {
				if call == "update RemediationLedger" && at == test.fails {
					return errNetwork
				}
				return nil
			}
			if err := test.end(w, r); (err != nil) != (test.fails != "") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(map[string]string{ClusterLedger: test.cluster, "production": test.own}, w.entries()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.stored, w.ledgers); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMirrorMayRefuseAndNeverGrants(t *testing.T) {
	open := protocol.Place{Granted: protocol.Yes}
	refused := func(name string) protocol.Place {
		return protocol.Place{Granted: protocol.No, Refusal: "MaxPerHour: 10 of 10 in the last hour (ledger " + name + ")", Until: epoch.Add(time.Hour)}
	}
	tests := map[string]struct {
		refuses string
		world   func(*world, *run)
		want    protocol.Place
		asked   []string
	}{
		"neither ledger refuses":             {"", func(*world, *run) {}, open, both},
		"the cluster's refuses":              {ClusterLedger, func(*world, *run) {}, refused(ClusterLedger), both[:1]},
		"the Environment's refuses":          {"production", func(*world, *run) {}, refused("production"), both},
		"a step that was granted passes":     {"production", func(w *world, r *run) { r.reserve(w.Context(), 0) }, open, nil},
		"a ledger that cannot be read, asks": {"production", func(w *world, _ *run) { w.failing("get RemediationLedger", errNetwork) }, open, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mirror := &fakeMirror{refuses: test.refuses}
			w.Mirror = mirror
			r := looked(w)
			test.world(w, r)
			if diff := cmp.Diff(test.want, r.askMirror(t.Context(), 0)); diff != "" {
				t.Errorf("the place (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.asked, mirror.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("where it refuses, the cluster gives back what a run before was granted", func(t *testing.T) {
		w := newWorld(t)
		w.Mirror = &fakeMirror{refuses: "production"}
		r := looked(w)
		if _, err := r.reserveIn(t.Context(), r.places()[0], 0); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(refused("production"), r.askMirror(t.Context(), 0)); diff != "" {
			t.Errorf("the place (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{ClusterLedger: "", "production": ""}, w.entries()); diff != "" {
			t.Errorf("entries (-want +got):\n%s", diff)
		}
	})
	t.Run("without a mirror nothing refuses", func(t *testing.T) {
		w := newWorld(t)
		if diff := cmp.Diff(open, looked(w).askMirror(t.Context(), 0)); diff != "" {
			t.Errorf("the place (-want +got):\n%s", diff)
		}
	})
	t.Run("it is told what was stored", func(t *testing.T) {
		w := newWorld(t)
		mirror := &fakeMirror{}
		w.Mirror = mirror
		looked(w).reserve(t.Context(), 0)
		if diff := cmp.Diff(both, mirror.put); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}
