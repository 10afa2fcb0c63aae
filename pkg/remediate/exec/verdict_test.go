// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// probed is a world whose plan is the probe of an open breaker, and has ended well.
func probed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Assessments = w.Client
	w.changePolicy(func(p *v1alpha1.RemediationPolicy) {
		p.Spec.Safety.CircuitBreaker = v1alpha1.CircuitBreakerSettings{FailureThreshold: 1, OpenDuration: &metav1.Duration{Duration: time.Minute}}
	})
	w.supersedes()
	l, err := w.readLedger(t.Context(), "production")
	if err != nil {
		t.Fatal(err)
	}
	opened := metav1.NewTime(epoch.Add(-time.Hour))
	l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: policyUID, State: v1alpha1.BreakerOpen, Failures: 1, LastOpenTime: &opened}}
	if err := w.Client.Status().Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if out := w.finish(); !out.Done || w.now().Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s: %s", w.now().Status.Phase, out.Why)
	}
	return w
}

// assess stores an assessment of the step.
func (w *world) assess(verdict v1alpha1.EffectVerdict, how func(*v1alpha1.EffectivenessAssessment)) {
	w.Helper()
	a := &v1alpha1.EffectivenessAssessment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: effect.NameOf("production-1", 0)},
		Spec:       v1alpha1.EffectivenessAssessmentSpec{Subject: v1alpha1.AssessmentSubject{Plan: &v1alpha1.AssessedStep{Name: "production-1", UID: planUID}}},
		Status:     v1alpha1.EffectivenessAssessmentStatus{Phase: v1alpha1.AssessmentCompleted, Verdict: verdict, Score: new(int32(6_500))},
	}
	if how != nil {
		how(a)
	}
	if err := w.Client.Create(w.Context(), a); err != nil {
		w.Fatal(err)
	}
}

func (w *world) breakerNow() v1alpha1.LedgerBreaker {
	return w.readLedgerNow("production").Status.Breakers[0]
}

func TestTheVerdictOnAStepReachesItsBreakerAndItsPlan(t *testing.T) {
	half, closed, open := v1alpha1.BreakerHalfOpen, v1alpha1.BreakerClosed, v1alpha1.BreakerOpen
	ineffective := &v1alpha1.StepEffect{Verdict: v1alpha1.VerdictIneffective, Score: new(int32(6_500)), AssessmentName: "production-1-0", BreakerState: open}
	tests := map[string]struct {
		assess  func(*world)
		breaker v1alpha1.BreakerState
		effect  *v1alpha1.StepEffect
		told    []string
	}{
		"an ineffective probe reopens the breaker": {func(w *world) { w.assess(v1alpha1.VerdictIneffective, nil) }, open, ineffective, []string{"production-1 0 Ineffective"}},
		"an effective one closes it": {
			func(w *world) { w.assess(v1alpha1.VerdictEffective, nil) }, closed,
			&v1alpha1.StepEffect{Verdict: v1alpha1.VerdictEffective, Score: new(int32(6_500)), AssessmentName: "production-1-0", BreakerState: closed}, []string{"production-1 0 Effective"},
		},
		"an assessment that failed says nothing": {
			func(w *world) {
				w.assess("", func(a *v1alpha1.EffectivenessAssessment) {
					a.Status.Phase, a.Status.Score = v1alpha1.AssessmentFailed, nil
				})
			}, open,
			&v1alpha1.StepEffect{Verdict: v1alpha1.VerdictInconclusive, AssessmentName: "production-1-0", BreakerState: open}, []string{"production-1 0 Inconclusive"},
		},
		"nothing happens while there is no assessment": {func(*world) {}, half, nil, nil},
		"nor while it is measured": {
			func(w *world) {
				w.assess("", func(a *v1alpha1.EffectivenessAssessment) { a.Status.Phase = v1alpha1.AssessmentStabilizing })
			}, half, nil, nil,
		},
		"an assessment of a plan that had the name before is none": {
			func(w *world) {
				w.assess(v1alpha1.VerdictEffective, func(a *v1alpha1.EffectivenessAssessment) { a.Spec.Subject.Plan.UID = "another" })
			}, half, nil, nil,
		},
		"where no effect is assessed none is looked for": {func(w *world) { w.assess(v1alpha1.VerdictEffective, nil); w.Assessments = nil }, half, nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := probed(t)
			if b := w.breakerNow(); b.State != half || b.VerdictDeadlineTime == nil {
				t.Fatalf("after the end of the probe the breaker is %+v", b)
			}
			tc.assess(w)
			if out := w.carry(); !out.Done {
				t.Errorf("the plan waits: %s", out.Why)
			}
			status := w.now().Status
			if got := w.breakerNow().State; got != tc.breaker {
				t.Errorf("the breaker is %s, want %s", got, tc.breaker)
			}
			if diff := cmp.Diff(tc.effect, status.Steps[0].Effect, cmpopts.IgnoreFields(v1alpha1.StepEffect{}, "Evidence")); diff != "" || !slices.Equal(w.verdicts, tc.told) {
				t.Errorf("people were told of %q, and the plan has (-want +got):\n%s", w.verdicts, diff)
			}
			if want := status.Steps[0].Effect; want != nil && status.Effect != want.Verdict {
				t.Errorf("the effect of the plan is %q", status.Effect)
			}
			before := w.ledgers
			w.carry()
			if len(w.ledgers) != len(before) || len(w.verdicts) != len(tc.told) {
				t.Errorf("the second time writes ledgers %v, and tells %q", w.ledgers[len(before):], w.verdicts)
			}
		})
	}
}

// An executor dies between the ledger and the plan, or does not reach the ledger: each verdict
// counts once, and none is lost.
func TestAVerdictIsToldAgainUntilThePlanHasIt(t *testing.T) {
	tests := map[string]struct {
		fails   string
		breaker v1alpha1.BreakerState // while the call fails
		told    int
	}{
		"the ledger cannot be written":       {"update RemediationLedger", v1alpha1.BreakerHalfOpen, 0},
		"the ledger cannot be read":          {"get RemediationLedger", v1alpha1.BreakerHalfOpen, 0},
		"the plan cannot be written":         {"update RemediationPlan", v1alpha1.BreakerOpen, 1},
		"the assessment cannot be read":      {"get EffectivenessAssessment", v1alpha1.BreakerHalfOpen, 0},
		"the plan itself cannot be read now": {"get RemediationPlan", v1alpha1.BreakerHalfOpen, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := probed(t)
			w.assess(v1alpha1.VerdictIneffective, nil)
			w.failing(tc.fails, errNetwork)
			out, err := w.Carry(t.Context(), w.key())
			w.fails = nil
			if err == nil && out.Done {
				t.Error("nothing is left to do")
			}
			if b := w.breakerNow(); b.State != tc.breaker || len(w.verdicts) != tc.told {
				t.Errorf("the breaker is %s, told %q", b.State, w.verdicts)
			}
			w.Holder = "executor-2"
			if out := w.carry(); !out.Done {
				t.Fatalf("the plan waits: %s", out.Why)
			}
			if b := w.breakerNow(); b.State != v1alpha1.BreakerOpen || b.Failures != 2 || b.Generation != 1 {
				t.Errorf("the breaker is %+v", b)
			}
			if told := w.assessmentRecords(); len(told) != 1 {
				t.Errorf("%d records tell of the assessment", len(told))
			}
			if status := w.now().Status; status.Effect != v1alpha1.VerdictIneffective || status.Steps[0].Effect.BreakerState != v1alpha1.BreakerOpen || status.Holder != "executor-2" {
				t.Errorf("the effect is %q, %+v, by %s", status.Effect, status.Steps[0].Effect, status.Holder)
			}
		})
	}
}

// A ledger that is gone has no breaker that waits. Its successor keeps the head of the record.
func TestAVerdictTurnsNoBreakerOfALedgerThatIsGone(t *testing.T) {
	w := probed(t)
	w.remove(w.readLedgerNow("production"))
	w.assess(v1alpha1.VerdictIneffective, nil)
	if out := w.carry(); !out.Done || w.now().Status.Effect != v1alpha1.VerdictIneffective {
		t.Errorf("%+v", out)
	}
	if l := w.readLedgerNow("production"); len(l.Status.Breakers) > 0 || len(l.Status.Chains) != 1 {
		t.Errorf("the ledger is %+v", l.Status)
	}
}

// An executor wrote why it waits into a plan that had ended under another one, in the name of
// that one.
func TestAnEndedPlanOfAnotherExecutorKeepsItsStatusWhileNoRecordCanBeWritten(t *testing.T) {
	w := newWorld(t)
	w.Assessments = w.Client
	if out := w.finish(); !out.Done {
		t.Fatalf("the plan is %s: %s", w.now().Status.Phase, out.Why)
	}
	before := w.now()
	w.Holder = "executor-b"
	w.assess(v1alpha1.VerdictEffective, nil)
	w.failing("update RemediationLedger", errNetwork) // which keeps the heads of records
	if _, err := w.Carry(t.Context(), w.key()); err == nil {
		t.Fatal("the verdict is noted although the head of the records cannot be kept")
	}
	if diff := cmp.Diff(before.Status, w.now().Status); diff != "" {
		t.Errorf("the status of the plan (-before +after):\n%s", diff)
	}
	w.fails = nil
	w.finish()
	if after := w.now().Status; after.Holder != "executor-b" || after.Epoch != before.Status.Epoch+1 || after.Steps[0].Effect == nil {
		t.Errorf("the plan is held by %s in epoch %d", after.Holder, after.Epoch)
	}
}
