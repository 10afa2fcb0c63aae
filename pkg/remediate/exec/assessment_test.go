// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// assessmentRecords are those that tell of assessments, in their order.
func (w *world) assessmentRecords() []evidence.Record {
	w.Helper()
	var found []evidence.Record
	for _, r := range w.recorded() {
		if r.Kind == evidence.KindAssessment {
			found = append(found, r)
		}
	}
	return found
}

// measured fills in what an assessor stores of a write that was overwritten, with texts and values of others.
func measured(w *world) func(*v1alpha1.EffectivenessAssessment) {
	target, at := &w.plan.Spec.Plan.Targets[0], metav1.NewTime(epoch.Add(time.Hour))
	return func(a *v1alpha1.EffectivenessAssessment) {
		a.Spec.Target.UID, a.Spec.PreHash, a.Spec.PostHash, a.Spec.WrittenTime = target.UID, target.DriftedHash, target.DesiredHash, &metav1.Time{Time: epoch}
		s := &a.Status
		s.Reason, s.Score, s.Formula, s.Integrity, s.CurrentHash, s.CompletionTime = v1alpha1.AssessedSpecDrift, new(int32(0)), effect.Formula, v1alpha1.IntegrityDrifted, target.DriftedHash, &at
		s.Message, s.SideEffects = "hunter2 said so", []string{"alert hunter2 fires"}
		s.Components = []v1alpha1.AssessedComponent{
			{Name: v1alpha1.ComponentHealth, State: v1alpha1.ComponentAssessed, Score: new(int32(5_000)), Effect: v1alpha1.EffectFor, Message: "hunter2"},
			{Name: v1alpha1.ComponentMetrics, State: v1alpha1.ComponentNotAnswered, Message: "hunter2", Metrics: []v1alpha1.MeasuredMetric{{Name: "hunter2"}}},
		}
	}
}

func TestTheRecordOfAnAssessmentTellsWhatIsStoredWithoutItsTexts(t *testing.T) {
	w := probed(t)
	w.assess(v1alpha1.VerdictInvalidated, measured(w))
	if out := w.carry(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	told := w.assessmentRecords()
	if len(told) != 1 {
		t.Fatalf("%d records tell of the assessment", len(told))
	}
	target, r := &w.plan.Spec.Plan.Targets[0], told[0]
	want := &evidence.Assessment{
		Name: "production-1-0", UID: r.Assessment.UID, Reason: "spec_drift", Verdict: "Invalidated", Score: new(int32(0)), Formula: effect.Formula, Integrity: "SpecDrifted",
		Components: []evidence.AssessedComponent{
			{Name: "Health", State: "Assessed", Effect: "For", Score: new(int32(5_000))}, {Name: "Metrics", State: "NotAnswered"},
		},
		PreHash: target.DriftedHash, PostHash: target.DesiredHash, CurrentHash: target.DriftedHash, WrittenAt: epoch,
	}
	if diff := cmp.Diff(want, r.Assessment); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	subject := evidence.Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: target.UID, Hash: target.DriftedHash}
	if diff := cmp.Diff(subject, r.Subject); diff != "" || !r.At.Equal(epoch.Add(time.Hour)) || r.Result.State != "Completed" || r.Wrote() {
		t.Errorf("at %s as %+v, subject (-want +got):\n%s", r.At, r.Result, diff)
	}
	named := w.now().Status.Steps[0].Effect.Evidence
	if named == nil || named.Sequence != r.Chain.Sequence {
		t.Errorf("the plan names %+v, and the record is %d", named, r.Chain.Sequence)
	}
	if head := w.readLedgerNow("production").Status.Chains[0]; head.Sequence != r.Chain.Sequence || head.Digest != named.Digest {
		t.Errorf("the head that is kept is %+v", head)
	}
	for _, name := range w.records.Names() {
		if raw, err := w.records.Read(t.Context(), name); err != nil || strings.Contains(payloadOf(t, raw), "hunter2") {
			t.Errorf("%s has a text of the assessment, or is not there: %v", name, err)
		}
	}
}

// payloadOf is what an envelope signs; the content itself of what is none.
func payloadOf(t *testing.T, raw []byte) string {
	t.Helper()
	var envelope struct{ Payload []byte }
	if err := json.Unmarshal(raw, &envelope); err != nil {
		t.Fatal(err)
	}
	return string(raw) + string(envelope.Payload)
}

// An executor dies between the record and the plan. The next one has no memory of the record.
func TestAnAssessmentHasOneRecordWhoeverWritesIt(t *testing.T) {
	w := probed(t)
	w.assess(v1alpha1.VerdictIneffective, nil)
	w.failing("update RemediationPlan", errNetwork)
	if out, err := w.Carry(t.Context(), w.key()); err == nil && out.Done {
		t.Fatal("nothing is left to do")
	}
	w.fails = nil
	w.Holder, w.Evidence = "executor-2", &Recorder{Writer: w.Evidence.Writer, Heads: w.Evidence.Heads, Builder: w.Evidence.Builder, Now: w.clock.Now}
	if out := w.carry(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	told := w.assessmentRecords()
	if len(told) != 1 || w.now().Status.Steps[0].Effect.Evidence.Sequence != told[0].Chain.Sequence {
		t.Errorf("%d records tell of the assessment, and the plan names %+v", len(told), w.now().Status.Steps[0].Effect.Evidence)
	}
}

// What is removed and made again before the plan has its verdict is another assessment.
func TestAnAssessmentThatIsMadeAgainHasARecordOfItsOwn(t *testing.T) {
	w := probed(t)
	w.assess(v1alpha1.VerdictIneffective, nil)
	w.failing("update RemediationPlan", errNetwork)
	_, _ = w.Carry(t.Context(), w.key()) // it dies before it stores the verdict
	w.fails = nil
	w.remove(&v1alpha1.EffectivenessAssessment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "production-1-0"}})
	w.assess(v1alpha1.VerdictEffective, nil)
	if out := w.carry(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	told := w.assessmentRecords()
	if len(told) != 2 || told[0].Assessment.Verdict != "Ineffective" || told[1].Assessment.Verdict != "Effective" {
		t.Fatalf("the records are %+v", told)
	}
	if e := w.now().Status.Steps[0].Effect; e.Verdict != v1alpha1.VerdictEffective || e.Evidence.Sequence != told[1].Chain.Sequence {
		t.Errorf("the plan has %+v", e)
	}
}

func TestAVerdictWaitsForAStoreThatIsDown(t *testing.T) {
	w := probed(t)
	w.assess(v1alpha1.VerdictIneffective, nil)
	w.records.hangs = func(string) error {
		return &evidence.StoreError{Op: "create", Reason: evidence.StoreUnreachable, Err: errNetwork}
	}
	if out := w.carry(); out.Done || out.Why != "the record of the assessment of its effect could not be written" {
		t.Errorf("got %+v", out)
	}
	if w.now().Status.Steps[0].Effect != nil || len(w.verdicts) > 0 {
		t.Errorf("the plan has %+v, and people were told %q", w.now().Status.Steps[0].Effect, w.verdicts)
	}
	w.records.hangs = nil
	if out := w.carry(); !out.Done || w.now().Status.Effect != v1alpha1.VerdictIneffective || len(w.assessmentRecords()) != 1 {
		t.Errorf("got %+v with the effect %s", out, w.now().Status.Effect)
	}
}
