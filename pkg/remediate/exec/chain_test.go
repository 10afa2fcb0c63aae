// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// record tells an event of the plan, of which number n says which one.
func (w *world) record(n int32) evidence.Record {
	r := (&run{Executor: w.Executor, plan: w.plan}).common(evidence.KindPlanPaused, epoch)
	r.Subject = evidence.Subject{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemediationPlan", Namespace: "shop", Name: "production-1",
		UID: planUID, Hash: PlanDigest(&w.plan.Spec.Plan),
	}
	r.Occurrence = n
	return r
}

// another is a recorder that knows nothing of what the world's own one did.
func (w *world) another() *Recorder {
	return &Recorder{Writer: w.Evidence.Writer, Heads: w.Evidence.Heads, Builder: w.Evidence.Builder, Now: w.clock.Now}
}

func (w *world) tell(r *Recorder, n int32) evidence.Head {
	w.Helper()
	head, err := r.Tell(w.Context(), "production", w.record(n))
	if err != nil {
		w.Fatalf("telling event %d: %v", n, err)
	}
	return head
}

// verify reads all records, and compares the end of the chain with its kept head.
func (w *world) verify(records int) {
	w.Helper()
	head, err := LedgerHeads{w.Executor}.Head(w.Context(), "production", policyUID)
	if err != nil {
		w.Fatal(err)
	}
	report, err := evidence.Verify(w.Context(), w.records, w.Evidence.Writer.Keys, evidence.Options{Heads: map[string]evidence.Head{policyUID: head}})
	if err != nil || !report.OK() || len(report.Chains) != 1 || report.Chains[0].Records != records || report.Chains[0].Ahead != 0 {
		w.Errorf("the chain is %+v, %v; want %d records", report, err, records)
	}
}

func TestAnEventIsRecordedOnceHoweverOftenItIsTold(t *testing.T) {
	tests := map[string]func(w *world) (first, second evidence.Head){
		"told twice by one process": func(w *world) (first, second evidence.Head) {
			return w.tell(w.Evidence, 1), w.tell(w.Evidence, 1)
		},
		"told by one process after another": func(w *world) (first, second evidence.Head) {
			return w.tell(w.Evidence, 1), w.tell(w.another(), 1)
		},
		"told again after its head could not be kept": func(w *world) (first, second evidence.Head) {
			w.failing("update RemediationLedger", errNetwork)
			if head, err := w.Evidence.Tell(w.Context(), "production", w.record(1)); err == nil {
				w.Errorf("a record whose head is not kept is told: %+v", head)
			}
			w.fails = nil
			first = w.tell(w.Evidence, 1)
			return first, w.tell(w.another(), 1)
		},
		"told by another process after its head could not be kept": func(w *world) (first, second evidence.Head) {
			w.failing("update RemediationLedger", errNetwork)
			if head, err := w.Evidence.Tell(w.Context(), "production", w.record(1)); err == nil {
				w.Errorf("a record whose head is not kept is told: %+v", head)
			}
			w.fails = nil
			first = w.tell(w.another(), 1)
			return first, w.tell(w.Evidence, 1)
		},
		"told again after the answer of the store was lost": func(w *world) (first, second evidence.Head) {
			w.records.Fault = func(op string) error {
				if op == "after create" {
					return errNetwork
				}
				return nil
			}
			if head, err := w.Evidence.Tell(w.Context(), "production", w.record(1)); err == nil {
				w.Errorf("a record without an answer is told: %+v", head)
			}
			w.records.Fault = nil
			first = w.tell(w.Evidence, 1)
			return first, w.tell(w.another(), 1)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			first, second := test(w)
			if first != second || first.Sequence != 1 {
				t.Errorf("the record is %+v, and then %+v", first, second)
			}
			w.verify(1)
		})
	}
}

func TestTwoProcessesTellTheEventsOfOneChain(t *testing.T) {
	w := chained(t)
	other := w.another()
	w.tell(other, 1) // it knows the chain up to here
	w.tell(w.Evidence, 2)
	if head, err := other.Tell(t.Context(), "production", w.record(3)); err == nil {
		t.Errorf("over the record of another process goes %+v", head)
	}
	if head := w.tell(other, 3); head.Sequence != 3 {
		t.Errorf("the third record is %+v", head)
	}
	if head := w.tell(other, 2); head.Sequence != 2 {
		t.Errorf("the record of the other process is %+v", head)
	}
	w.verify(3)
}

func TestAProcessGoesOnAfterARecordWhoseHeadWasNotKept(t *testing.T) {
	w := chained(t)
	w.failing("update RemediationLedger", errNetwork)
	if head, err := w.Evidence.Tell(t.Context(), "production", w.record(1)); err == nil {
		t.Errorf("a record whose head is not kept is told: %+v", head)
	}
	w.fails = nil
	if head := w.tell(w.another(), 2); head.Sequence != 2 {
		t.Errorf("the next event is told as %+v", head)
	}
	w.verify(2)
}

func TestAProcessThatMeetsAChainLooksBackAndNotForEver(t *testing.T) {
	w := chained(t)
	for n := range int32(lookBack + 2) {
		w.tell(w.Evidence, n)
	}
	other := w.another()
	if head := w.tell(other, 2); head.Sequence != 3 {
		t.Errorf("an event of %d records ago is told again as %+v", lookBack, head)
	}
	for _, r := range []*Recorder{w.Evidence, other} {
		if c := r.chains[policyUID]; len(c.told) != lookBack || len(c.order) != lookBack {
			t.Errorf("%d events are kept in memory, in an order of %d", len(c.told), len(c.order))
		}
	}
	w.verify(lookBack + 2)
}

func TestRecordsThatRetentionMovedAwayAreNoObstacle(t *testing.T) {
	w := chained(t)
	for n := range int32(3) {
		w.tell(w.Evidence, n)
	}
	w.records.Remove(evidence.Name(policyUID, 1))
	other := w.another()
	if head := w.tell(other, 1); head.Sequence != 2 {
		t.Errorf("the second event is told again as %+v", head)
	}
	if head := w.tell(other, 3); head.Sequence != 4 {
		t.Errorf("a new event is told as %+v", head)
	}
}

func TestAChainThatCannotBeBelievedIsNotGoneOnWith(t *testing.T) {
	tests := map[string]func(*world){
		"a record is damaged":                  func(w *world) { w.records.Put(evidence.Name(policyUID, 1), []byte("{}")) },
		"a record after the head is damaged":   func(w *world) { w.records.Put(evidence.Name(policyUID, 3), []byte("{}")) },
		"the head cannot be read":              func(w *world) { w.failing("get RemediationLedger", errNetwork) },
		"a record cannot be read for a moment": func(w *world) { w.records.unread = errNetwork },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			w := chained(t)
			w.tell(w.Evidence, 0)
			w.tell(w.Evidence, 1)
			before := len(w.records.Names())
			damage(w)
			names := len(w.records.Names())
			if head, err := w.another().Tell(t.Context(), "production", w.record(2)); err == nil {
				t.Errorf("it goes on with %+v", head)
			}
			if after := len(w.records.Names()); after != names {
				t.Errorf("%d records are stored, %d before", after, before)
			}
		})
	}
}

func TestEachRecordNamesItsBuilderWhoeverMadeIt(t *testing.T) {
	w := chained(t)
	w.tell(w.Evidence, 1)
	sealed, err := w.Evidence.read(t.Context(), evidence.Name(policyUID, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got := sealed.Record.Builder; got != (evidence.Builder{Version: "test"}) {
		t.Errorf("the builder is %+v", got)
	}
	if _, err := w.Evidence.read(t.Context(), evidence.Name(policyUID, 2)); err == nil {
		t.Error("a record that is not there is read")
	}
}
