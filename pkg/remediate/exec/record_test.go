// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func digestOfPolicy(p *v1alpha1.RemediationPolicy) string { return planner.Digest(&p.Spec) }

// recorded are all records of the chain, from the first to the last.
func (w *world) recorded() []evidence.Record {
	w.Helper()
	var all []evidence.Record
	for _, name := range w.records.Names() {
		sealed, err := w.Evidence.read(w.Context(), name)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, sealed.Record)
	}
	return all
}

func TestTheRecordsOfAPlanTellItsWholeStory(t *testing.T) {
	w := newWorld(t)
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) {
		p.Spec.Plan.Targets[0].Severity.Factors = []v1alpha1.SeverityFactor{{Name: "DriftType", Score: 80, Weight: 30}}
		p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "alice"}
	})
	w.finish()
	all := w.recorded()
	w.verify(len(all))
	var kinds []evidence.Kind
	var step evidence.Record
	for _, r := range all {
		kinds = append(kinds, r.Kind)
		if r.Kind == evidence.KindStep {
			step = r
		}
	}
	if diff := cmp.Diff([]evidence.Kind{evidence.KindPlanCreated, evidence.KindPlanApproved, evidence.KindStep, evidence.KindPlanFinished}, kinds); diff != "" {
		t.Fatalf("kinds (-want +got):\n%s", diff)
	}
	plan := w.now()
	target := plan.Spec.Plan.Targets[0]
	want := evidence.Record{
		Kind: evidence.KindStep, At: epoch, Chain: step.Chain,
		Subject:  evidence.Subject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web", Hash: target.DesiredHash},
		Drift:    evidence.NewDrift([]string{"/spec/replicas"}),
		Severity: &evidence.Severity{Level: "High", Score: 65, Factors: []evidence.Factor{{Name: "DriftType", Score: 80, Weight: 30}}},
		Policy:   &evidence.Policy{Name: "production", UID: policyUID, Generation: 3, Digest: planner.Digest(&w.policy.Spec)},
		Plan:     &evidence.Plan{Namespace: "shop", Name: "production-1", UID: planUID, Digest: PlanDigest(&plan.Spec.Plan)},
		Step:     &evidence.Step{Index: 0, Action: "Reconcile", StartedAt: epoch},
		Intent:   &evidence.Intent{Epoch: 1, UID: "uid-web", ResourceVersion: "41", PreHash: target.DriftedHash, DesiredHash: target.DesiredHash, At: epoch},
		Result: evidence.Result{
			State: "Verified", ResourceVersion: "42", Hash: target.DesiredHash, Origin: evidence.OriginAPIResponse, At: epoch,
		},
		Requester: "platform", Approver: "alice", InitiatedBy: "system:auto", CorrelationID: "c-1", DriftReportID: "d-1", Builder: evidence.Builder{Version: "test"},
		Bodies: step.Bodies, // see TestAnAuditorReadsPolicyPlanAndArtifactsOfARecord
	}
	if diff := cmp.Diff(want, step); diff != "" {
		t.Errorf("the record of the step (-want +got):\n%s", diff)
	}
	stored := plan.Status.Steps[0].Evidence
	if stored == nil || stored.Sequence != step.Chain.Sequence || stored.Digest == "" {
		t.Errorf("the plan names the record as %+v", stored)
	}
}

func TestTheRecordOfAStepThatMadeItsTarget(t *testing.T) {
	made := func(w *world) *run {
		r := w.started(v1alpha1.StepVerified)
		r.target(0).UID = ""
		step := &r.plan.Status.Steps[0]
		step.CompletionTime = &metav1.Time{Time: epoch}
		step.Intent = &v1alpha1.StepIntentRecord{StorageTime: metav1.NewTime(epoch)}
		step.Result = &v1alpha1.StepResult{ResourceVersion: "1", Hash: r.target(0).DesiredHash, Origin: v1alpha1.ResultRecovered, RecordTime: metav1.NewTime(epoch)}
		return r
	}
	for name, test := range map[string]struct {
		world func(*world)
		uid   string
	}{
		"has the uid of what it made":                      {func(*world) {}, "uid-web"},
		"has the uid of the plan if that cannot be read":   {func(w *world) { w.targets.fails = always(errNetwork) }, planUID},
		"has the uid of the plan if that cannot be parsed": {func(w *world) { delete(w.targets.metadata("web"), "uid") }, planUID},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.world(w)
			r := made(w)
			record := r.stepRecord(t.Context(), 0)
			if record.Subject.UID != test.uid || record.Intent.UID != test.uid || record.Intent.PreHash != "absent" || record.Result.Origin != evidence.OriginRecovered {
				t.Errorf("subject %+v, intent %+v, result %+v", record.Subject, record.Intent, record.Result)
			}
			record.Builder = w.Evidence.Builder
			if err := record.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheRecordOfAStepThatWroteNothingClaimsNoWrite(t *testing.T) {
	w := newWorld(t)
	r := w.started(v1alpha1.StepSkipped)
	r.plan.Status.Steps[0].CompletionTime = &metav1.Time{Time: epoch.Add(time.Minute)}
	record := r.stepRecord(t.Context(), 0)
	if record.Wrote() || record.Intent != nil || record.Subject.Hash != r.target(0).DriftedHash || !record.At.Equal(epoch.Add(time.Minute)) || record.Approver != "" {
		t.Errorf("got %+v", record)
	}
}

func TestWhichDecisionAStatusStandsFor(t *testing.T) {
	started := v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning, StartTime: &metav1.Time{Time: epoch}}
	in := func(phase v1alpha1.PlanPhase) v1alpha1.RemediationPlanStatus {
		return v1alpha1.RemediationPlanStatus{Phase: phase}
	}
	tests := map[string]struct {
		asked  v1alpha1.PlanVerb
		before v1alpha1.RemediationPlanStatus
		next   v1alpha1.PlanPhase
		want   string
	}{
		"its beginning":                               {"", in(""), v1alpha1.PlanCreated, "PlanCreated "},
		"no decision while the phase stays":           {"", started, v1alpha1.PlanRunning, "none"},
		"its first wait":                              {"", in(v1alpha1.PlanCreated), v1alpha1.PlanDeferred, "PlanDeferred Deferred"},
		"its first wait for a time":                   {"", in(v1alpha1.PlanCreated), v1alpha1.PlanScheduled, "PlanDeferred Scheduled"},
		"not its later waits":                         {"", in(v1alpha1.PlanDeferred), v1alpha1.PlanScheduled, "none"},
		"that it runs is no decision by itself":       {"", in(v1alpha1.PlanCreated), v1alpha1.PlanRunning, "none"},
		"that a person has it executed":               {v1alpha1.PlanExecute, in(v1alpha1.PlanDeferred), v1alpha1.PlanRunning, "PlanApproved "},
		"not when it has begun before":                {v1alpha1.PlanExecute, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSealing, StartTime: started.StartTime}, v1alpha1.PlanRunning, "none"},
		"that it goes on after a pause":               {"", in(v1alpha1.PlanPaused), v1alpha1.PlanRunning, "PlanResumed "},
		"that it pauses":                              {v1alpha1.PlanPause, in(v1alpha1.PlanSealing), v1alpha1.PlanPaused, "PlanPaused "},
		"that a person cancels it":                    {v1alpha1.PlanCancel, in(v1alpha1.PlanSealing), v1alpha1.PlanCanceled, "PlanCanceled Stopped"},
		"that a brake ends it":                        {"", in(v1alpha1.PlanSealing), v1alpha1.PlanCanceled, "PlanHalted Stopped"},
		"that it succeeds":                            {"", started, v1alpha1.PlanSucceeded, "PlanFinished Succeeded"},
		"that it succeeds in part":                    {"", started, v1alpha1.PlanPartialSuccess, "PlanFinished PartialSuccess"},
		"that it fails":                               {"", started, v1alpha1.PlanFailed, "PlanFinished Failed"},
		"that it is superseded":                       {"", in(v1alpha1.PlanSealing), v1alpha1.PlanSuperseded, "PlanFinished Superseded"},
		"not that it begins to end":                   {v1alpha1.PlanCancel, started, v1alpha1.PlanSealing, "none"},
		"nor a phase that this version does not know": {"", started, "Dreaming", "none"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			next := in(test.next)
			kind, reason, ok := decisionOf(test.asked, &test.before, &next)
			got := string(kind) + " " + reason
			if !ok {
				got = "none"
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Each record of a decision names the person who made it. Each pause has a record
// of its own.
func TestTheRecordOfADecisionNamesWhoMadeIt(t *testing.T) {
	tests := map[string]struct {
		control    v1alpha1.PlanControl
		before     v1alpha1.PlanPhase
		next       v1alpha1.RemediationPlanStatus
		approver   string
		occurrence int32
	}{
		"a pause":            {v1alpha1.PlanControl{Verb: v1alpha1.PlanPause, RequestedBy: "bob"}, v1alpha1.PlanSealing, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanPaused, EndedBy: "alice"}, "alice", 7},
		"the end of one":     {v1alpha1.PlanControl{RequestedBy: "bob"}, v1alpha1.PlanPaused, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}, "bob", 7},
		"a cancellation":     {v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel}, v1alpha1.PlanSealing, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCanceled, EndedBy: "alice"}, "alice", 0},
		"a halt":             {v1alpha1.PlanControl{}, v1alpha1.PlanSealing, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCanceled, EndedBy: "root"}, "root", 0},
		"an execution":       {v1alpha1.PlanControl{Verb: v1alpha1.PlanExecute, RequestedBy: "carol"}, v1alpha1.PlanDeferred, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanRunning}, "carol", 0},
		"what it does alone": {v1alpha1.PlanControl{}, v1alpha1.PlanRunning, v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanSucceeded, EndedBy: "alice"}, "", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock.now = epoch.Add(300 * time.Millisecond)
			r := w.open()
			r.plan.Generation, r.plan.Spec.Control, r.plan.Status.Phase = 7, test.control, test.before
			r.plan.Status.Decision = &v1alpha1.PlanDecision{}
			if err := r.decided(t.Context(), &test.next); err != nil {
				t.Fatal(err)
			}
			all := w.recorded()
			if len(all) != 1 || all[0].Approver != test.approver || all[0].Occurrence != test.occurrence || !all[0].At.Equal(epoch) {
				t.Fatalf("records are %+v", all)
			}
			subject := evidence.Subject{APIVersion: "plumbline.dev/v1alpha1", Kind: "RemediationPlan", Namespace: "shop", Name: "production-1", UID: planUID, Hash: PlanDigest(&r.plan.Spec.Plan)}
			if diff := cmp.Diff(subject, all[0].Subject); diff != "" {
				t.Errorf("subject (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a generation beyond all bounds", func(t *testing.T) {
		w := newWorld(t)
		r := w.open()
		r.plan.Generation, r.plan.Status.Phase = math.MaxInt32+9, v1alpha1.PlanSealing
		r.plan.Status.Decision = &v1alpha1.PlanDecision{}
		if err := r.decided(t.Context(), &v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanPaused}); err != nil || w.recorded()[0].Occurrence != math.MaxInt32 {
			t.Errorf("got %v: %+v", err, w.recorded())
		}
	})
}

// Another executor decided that the plan is scheduled, told that, and could not store it. Its
// record tells nothing about a plan that is deferred instead.
func TestARecordOfAScheduledPlanIsNoneOfADeferredOne(t *testing.T) {
	w := newWorld(t)
	r := w.open()
	r.plan.Status.Phase = v1alpha1.PlanCreated
	for _, phase := range []v1alpha1.PlanPhase{v1alpha1.PlanScheduled, v1alpha1.PlanDeferred, v1alpha1.PlanDeferred, v1alpha1.PlanScheduled} {
		if err := r.decided(t.Context(), &v1alpha1.RemediationPlanStatus{Phase: phase}); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	for _, record := range w.recorded() {
		told = append(told, record.Result.State)
	}
	if diff := cmp.Diff([]string{"Created", "Scheduled", "Deferred"}, told); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestADigestOfAPlanTellsTwoApart(t *testing.T) {
	w := newWorld(t)
	one, other := w.newPlan().Spec.Plan, w.newPlan().Spec.Plan
	other.Targets[0].Revision = "web-5"
	if PlanDigest(&one) == PlanDigest(&other) || len(PlanDigest(&one)) != len(digestOf("1")) {
		t.Errorf("digests are %s and %s", PlanDigest(&one), PlanDigest(&other))
	}
}

func TestTheOriginOfAResultIsNotOverstated(t *testing.T) {
	for origin, want := range map[v1alpha1.ResultOrigin]evidence.Origin{
		v1alpha1.ResultResponse: evidence.OriginAPIResponse, v1alpha1.ResultRecovered: evidence.OriginRecovered, "Odd": evidence.OriginRecovered,
	} {
		if got := originOf(origin); got != want {
			t.Errorf("%s becomes %s, want %s", origin, got, want)
		}
	}
}
