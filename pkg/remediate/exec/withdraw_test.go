// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// beforeStored has something happen once, right before a status with a phase is sent.
type beforeStored struct {
	client.Client
	phase   v1alpha1.PlanPhase
	happens func()
}

func (b *beforeStored) Status() client.SubResourceWriter { return beforeStatus{b.Client.Status(), b} }

type beforeStatus struct {
	client.SubResourceWriter
	b *beforeStored
}

func (s beforeStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if plan, ok := o.(*v1alpha1.RemediationPlan); ok && plan.Status.Phase == s.b.phase && s.b.happens != nil {
		happens := s.b.happens
		s.b.happens = nil
		happens()
	}
	return s.SubResourceWriter.Update(ctx, o, opts...)
}

// overtaken has alice cancel the plan right before the status of its end is sent.
func (w *world) overtaken() {
	w.Client = &beforeStored{Client: w.Client, phase: v1alpha1.PlanSucceeded, happens: func() {
		change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
			p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "alice"}
		})
	}}
}

// decisions are all records about the plan itself, and the problems of the chain.
func (w *world) decisions() (all []string, problems []evidence.Problem) {
	w.Helper()
	report, err := evidence.Verify(w.Context(), w.records, w.Evidence.Writer.Keys, evidence.Options{Each: func(s evidence.Sealed) {
		r := &s.Record
		switch {
		case r.Withdraws != nil:
			all = append(all, fmt.Sprintf("%d %s %d", r.Chain.Sequence, r.Kind, r.Withdraws.Sequence))
		case r.Step == nil:
			all = append(all, fmt.Sprintf("%d %s %s", r.Chain.Sequence, r.Kind, r.Result.State))
		}
	}})
	if err != nil {
		w.Fatal(err)
	}
	return all, report.Problems
}

// D14 of the review of remediation: the record of a decision comes before its status. If
// another writer wrote the plan in between, the record told of what never was.
func TestARecordOfADecisionThatWasNeverStoredIsWithdrawn(t *testing.T) {
	canceled := []string{"1 PlanCreated Created", "3 PlanFinished Succeeded", "4 PlanCanceled Canceled", "5 DecisionWithdrawn 3"}
	for name, test := range map[string]struct {
		spoil func(w *world)
		then  func(w *world)
		want  []string
	}{
		"nothing comes in between": {func(*world) {}, func(*world) {}, []string{"1 PlanCreated Created", "3 PlanFinished Succeeded"}},
		"a cancellation comes first": {
			func(w *world) { w.overtaken() }, func(*world) {}, canceled,
		},
		"a cancellation comes first, and the next executor withdraws": {
			func(w *world) { w.overtaken(); w.withoutWithdrawals() },
			func(w *world) { w.records.Fault = nil; w.next() }, canceled,
		},
		"the answer to the end is lost": {
			func(w *world) {
				w.Client = losing{w.Client, func(p *v1alpha1.RemediationPlan) bool { return p.Status.Phase == v1alpha1.PlanSucceeded }}
			}, func(*world) {}, []string{"1 PlanCreated Created", "3 PlanFinished Succeeded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.spoil(w)
			for range 100 {
				if out, err := w.Carry(t.Context(), w.key()); err == nil && out.Done {
					break
				}
			}
			test.then(w)
			w.carryOver()
			got, problems := w.decisions()
			if diff := cmp.Diff(test.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%v; decisions (-want +got):\n%s", problems, diff)
			}
		})
	}
}

// withoutWithdrawals has the store refuse the fifth record, which is the withdrawal.
func (w *world) withoutWithdrawals() {
	w.records.Fault = func(op string) error {
		if op == "before create" && len(w.records.Names()) == 4 {
			return errNetwork
		}
		return nil
	}
}

// next has another process take over, which knows what is stored alone.
func (w *world) next() {
	w.Evidence = w.another()
	w.Holder = "executor-2"
}

func (w *world) paused(n int32, plan *v1alpha1.RemediationPlanStatus) *run {
	w.Helper()
	r := w.open()
	r.plan.Status, r.plan.Generation = *plan, int64(n)
	return r
}

func TestADecisionNamesTheRecordsThatNeverWere(t *testing.T) {
	w := newWorld(t)
	at := func(r *run, phase v1alpha1.PlanPhase) *v1alpha1.PlanDecision {
		next := r.plan.Status.DeepCopy()
		next.Phase = phase
		if err := r.decided(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		return next.Decision
	}
	sequences := func(d *v1alpha1.PlanDecision) []int64 {
		all := []int64{d.Sequence}
		for _, other := range d.Withdraws {
			all = append(all, other.Sequence)
		}
		return all
	}
	if named := at(w.paused(1, &v1alpha1.RemediationPlanStatus{}), v1alpha1.PlanCreated); named != nil {
		t.Errorf("the first status names record %d", named.Sequence)
	}
	created := at(w.paused(1, &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCreated}), v1alpha1.PlanRunning)
	if diff := cmp.Diff([]int64{1}, sequences(created)); diff != "" {
		t.Errorf("the next phase (-want +got):\n%s", diff)
	}
	running := &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning, Decision: created}
	at(w.paused(2, running), v1alpha1.PlanPaused) // is not stored
	again := at(w.paused(2, running), v1alpha1.PlanPaused)
	if diff := cmp.Diff([]int64{2}, sequences(again)); diff != "" {
		t.Errorf("a decision that is stored in the end (-want +got):\n%s", diff)
	}
	at(w.paused(3, running), v1alpha1.PlanPaused) // is not stored either
	finished := at(w.paused(4, running), v1alpha1.PlanSucceeded)
	if diff := cmp.Diff([]int64{4, 2, 3}, sequences(finished)); diff != "" {
		t.Errorf("a decision after two that were not stored (-want +got):\n%s", diff)
	}
	older := at(w.paused(4, &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}), v1alpha1.PlanSucceeded)
	if diff := cmp.Diff([]int64{4}, sequences(older)); diff != "" {
		t.Errorf("a plan of an earlier release (-want +got):\n%s", diff)
	}
	// The pause is told again after it was withdrawn, and is a record of its own.
	late := &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning, Decision: finished}
	pause := at(w.paused(2, late), v1alpha1.PlanPaused)
	if diff := cmp.Diff([]int64{7}, sequences(pause)); diff != "" {
		t.Errorf("an event that is told again (-want +got):\n%s", diff)
	}
	got, problems := w.decisions()
	want := []string{
		"1 PlanCreated Created", "2 PlanPaused Paused", "3 PlanPaused Paused", "4 PlanFinished Succeeded",
		"5 DecisionWithdrawn 2", "6 DecisionWithdrawn 3", "7 PlanPaused Paused",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v; records (-want +got):\n%s", problems, diff)
	}
}

// An executor decided the end of a plan, and another one had stored another end before. No
// further decision is stored, so the record is withdrawn when the executor finds the end.
func TestADecisionAfterTheStoredEndIsWithdrawn(t *testing.T) {
	w := newWorld(t)
	decide := func(r *run, phase v1alpha1.PlanPhase) *v1alpha1.PlanDecision {
		next := r.plan.Status.DeepCopy()
		next.Phase = phase
		if err := r.decided(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		return next.Decision
	}
	decide(w.paused(1, &v1alpha1.RemediationPlanStatus{}), v1alpha1.PlanCreated)
	created := decide(w.paused(1, &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCreated}), v1alpha1.PlanRunning)
	running := &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning, Decision: created}
	canceled := decide(w.paused(2, running), v1alpha1.PlanCanceled)
	decide(w.paused(3, running), v1alpha1.PlanSucceeded) // is not stored
	ended := w.paused(3, &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCanceled, Decision: canceled})
	if err := ended.withdraw(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, problems := w.decisions()
	want := []string{"1 PlanCreated Created", "2 PlanHalted Canceled", "3 PlanFinished Succeeded", "4 DecisionWithdrawn 3"}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("%v; records (-want +got):\n%s", problems, diff)
	}
}

func TestADecisionThatIsOlderThanTheStoredOneDoesNotTakeItsPlace(t *testing.T) {
	w := newWorld(t)
	stored := &v1alpha1.PlanDecision{StepEvidence: v1alpha1.StepEvidence{Sequence: 9, Digest: digestOf("9")}}
	r := w.paused(1, &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning, Decision: stored})
	got := r.decision(stored, evidence.Head{Sequence: 4, Digest: digestOf("4")})
	if diff := cmp.Diff(stored, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
