// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// begun has the plan begin, and the ledgers refuse each write after that.
func (w *world) begun() {
	w.Helper()
	r := w.open()
	for _, p := range r.places() {
		if _, err := r.readLedger(w.Context(), p.name); err != nil {
			w.Fatal(err)
		}
	}
	w.calls = nil
	w.failing("update RemediationLedger", errNetwork)
	w.carry()
	status := w.now().Status
	if status.Phase != v1alpha1.PlanCreated || status.Decision != nil || len(w.records.Names()) != 1 {
		w.Fatalf("the plan is %s and names %+v; there are %d records", status.Phase, status.Decision, len(w.records.Names()))
	}
	w.fails, w.calls = nil, nil
}

// The grant of the first step keeps the head of the record of the beginning. So no write of its own
// keeps that head, and no status names the record before.
func TestTheGrantKeepsTheHeadOfTheRecordOfTheBeginning(t *testing.T) {
	w := newWorld(t)
	w.begun()
	granted := false
	w.granted = func() {
		chains := w.readLedgerNow("production").Status.Chains
		granted = len(chains) == 1 && chains[0].Sequence == 1
	}
	w.finish()
	if !granted {
		t.Error("the grant keeps no head")
	}
	want := []string{"update RemediationLedger plumbline-cluster", "update RemediationLedger production", "update RemediationLedger production", "update RemediationLedger plumbline-cluster"}
	if diff := cmp.Diff(want, w.writes("update RemediationLedger")); diff != "" {
		t.Errorf("writes of the ledgers (-want +got):\n%s", diff)
	}
	w.verify(3)
}

// The next phase of a plan names the record of the beginning, also in the hands of an executor that
// has not written that record, and where the store has lost the record unseen.
func TestTheNextPhaseNamesTheRecordOfTheBeginning(t *testing.T) {
	canceled := func(w *world) {
		change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
			p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}
		})
	}
	succeeded := []string{"1 PlanCreated Created", "3 PlanFinished Succeeded"}
	for name, test := range map[string]struct {
		between func(*world)
		want    []string
	}{
		"the same executor goes on":   {func(*world) {}, succeeded},
		"another executor goes on":    {(*world).next, succeeded},
		"the store loses the record":  {func(w *world) { w.records.Remove(w.records.Names()[0]); w.next() }, succeeded},
		"a person cancels the plan":   {canceled, []string{"1 PlanCreated Created", "3 PlanCanceled Canceled"}},
		"another executor cancels it": {func(w *world) { canceled(w); w.next() }, []string{"1 PlanCreated Created", "3 PlanCanceled Canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.begun()
			test.between(w)
			var named []*v1alpha1.PlanDecision // by each status of a later phase
			w.fails = func(call, _ string) error {
				if now := w.now(); call == "update RemediationPlan" && now.Status.Phase != v1alpha1.PlanCreated {
					named = append(named, now.Status.Decision)
				}
				return nil
			}
			w.finish()
			if len(named) == 0 || named[0] == nil || named[0].Sequence != 1 {
				t.Errorf("the statuses name %+v", named)
			}
			got, problems := w.decisions()
			if diff := cmp.Diff(test.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%v; decisions (-want +got):\n%s", problems, diff)
			}
		})
	}
}

// A brake holds while the store of the records is out, also in the hands of another executor.
func TestABrakeDoesNotWaitForTheRecordOfTheBeginning(t *testing.T) {
	w := newWorld(t)
	w.begun()
	w.next()
	w.records.unread = errNetwork
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}
	})
	w.carry()
	if status := w.now().Status; status.Phase != v1alpha1.PlanSealing || status.Steps[0].State != v1alpha1.StepSkipped {
		t.Errorf("the plan is %s, and its step %s", status.Phase, status.Steps[0].State)
	}
	w.records.unread = nil
	stale := w.paused(1, &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCreated})
	if err := stale.decided(t.Context(), &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanDeferred}); err != nil { // is not stored
		t.Fatal(err)
	}
	w.finish()
	got, problems := w.decisions()
	want := []string{"1 PlanCreated Created", "2 PlanDeferred Deferred", "4 PlanCanceled Canceled", "5 DecisionWithdrawn 2"}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v; decisions (-want +got):\n%s", problems, diff)
	}
}
