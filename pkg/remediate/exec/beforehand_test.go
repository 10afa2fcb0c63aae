// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

// isVerified says that the step of the plan has ended.
func (w *world) isVerified() bool {
	steps := w.now().Status.Steps
	return steps != nil && steps[0].State == v1alpha1.StepVerified
}

// One write of the ledger ends the place, and keeps the heads of the records of the step and of
// the end.
func TestThePlaceOfAStepEndsWithTheHeadsOfItsRecords(t *testing.T) {
	w := newWorld(t)
	writes := 0
	w.fails = func(call, name string) error {
		if call == "update RemediationLedger" && name == "production" && w.isVerified() {
			writes++
		}
		return nil
	}
	w.finish()
	l := w.readLedgerNow("production")
	if writes != 1 || l.Status.Chains[0].Sequence != 3 || l.Status.Entries[0].Outcome != v1alpha1.LedgerSucceeded {
		t.Errorf("after the end of the step the ledger was written %d times: %+v", writes, l.Status)
	}
	w.verify(3)
}

// The ledgers are told how a step ended although its record cannot be written: a store that is
// broken keeps no place, and no failure from the breaker.
func TestAStoreThatIsBrokenKeepsNoPlace(t *testing.T) {
	for name, operation := range map[string]string{"the record is not stored": storetest.BeforeCreate, "the answer is lost": storetest.AfterCreate} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.records.Fault = func(at string) error {
				if at == operation && w.isVerified() {
					return errNetwork
				}
				return nil
			}
			if _, err := w.Carry(t.Context(), w.key()); err != nil && !errors.Is(err, errNetwork) {
				t.Fatal(err)
			}
			l := w.readLedgerNow("production")
			if !w.isVerified() || l.Status.Entries[0].Outcome != v1alpha1.LedgerSucceeded {
				t.Errorf("the ledger has %+v", l.Status.Entries)
			}
			if status := w.now().Status; status.Phase != v1alpha1.PlanRunning || status.Steps[0].Evidence != nil {
				t.Errorf("without records the plan is %s, and its step names %+v", status.Phase, status.Steps[0].Evidence)
			}
			w.records.Fault = nil
			w.finish()
			if status := w.now().Status; status.Phase != v1alpha1.PlanSucceeded || status.Steps[0].Evidence == nil {
				t.Errorf("with records the plan is %s, and its step names %+v", status.Phase, status.Steps[0].Evidence)
			}
			w.verify(3)
		})
	}
}

// The record of the end comes before the target is let go of. Whoever cancels the plan in between
// changes the end.
func TestAnEndThatWasRecordedBeforehandIsWithdrawnAfterACancellation(t *testing.T) {
	w := newWorld(t)
	w.fails = func(call, _ string) error {
		if call == "update Baseline" && w.isVerified() {
			return errNetwork // the target is not let go of
		}
		return nil
	}
	w.carry()
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}
	})
	w.fails = nil
	w.finish()
	got, problems := w.decisions()
	want := []string{"1 PlanCreated Created", "3 PlanFinished Succeeded", "4 PlanCanceled Canceled", "5 DecisionWithdrawn 3"}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v; decisions (-want +got):\n%s", problems, diff)
	}
}

// An executor that dies after the records asks for them again, and finds them.
func TestAnExecutorThatDiesAfterTheRecordsLeavesNoSecondOnes(t *testing.T) {
	w := newWorld(t)
	w.fails = func(call, _ string) error {
		if call == "update RemediationLedger" && w.isVerified() {
			return errNetwork
		}
		return nil
	}
	if _, err := w.Carry(t.Context(), w.key()); !errors.Is(err, errNetwork) {
		t.Fatalf("carrying the plan on ends with %v", err)
	}
	w.fails = nil
	w.next()
	w.finish()
	records := 0
	report, err := evidence.Verify(t.Context(), w.records, w.Evidence.Writer.Keys, evidence.Options{Each: func(evidence.Sealed) { records++ }})
	if err != nil || !report.OK() || records != 3 || w.now().Status.Phase != v1alpha1.PlanSucceeded {
		t.Errorf("the plan is %s, with %d records: %+v, %v", w.now().Status.Phase, records, report, err)
	}
}

// Two executors may decide on different ends, as when the policy changes before the first end is
// stored. Each end has a record of its own: the second would else pass for told.
func TestAnotherEndHasARecordOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.fails = func(call, _ string) error {
		if call == "update Baseline" && w.isVerified() {
			return errNetwork // the target is not let go of
		}
		return nil
	}
	w.carry()
	w.fails = nil
	plan := w.now()
	plan.Status.Steps[0].State, plan.Status.Steps[0].Reason = v1alpha1.StepFailed, v1alpha1.ReasonUnhealthy
	if err := w.Client.Status().Update(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	w.finish()
	got, problems := w.decisions()
	want := []string{"1 PlanCreated Created", "3 PlanFinished Succeeded", "4 PlanFinished Failed", "5 DecisionWithdrawn 3"}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v; decisions (-want +got):\n%s", problems, diff)
	}
}
