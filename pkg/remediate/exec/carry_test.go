// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

func TestAPlanPutsItsTargetBack(t *testing.T) {
	w := newWorld(t)
	if out := w.finish(); !out.Done {
		t.Fatalf("the plan waits: %s", out.Why)
	}
	plan := w.now()
	if step := plan.Status.Steps[0]; plan.Status.Phase != v1alpha1.PlanSucceeded || step.State != v1alpha1.StepVerified {
		t.Errorf("plan %s, step %s %s: %q", plan.Status.Phase, step.State, step.Reason, step.Logs)
	}
	if diff := cmp.Diff([]string{"put web"}, w.targets.stored); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got, want := w.guards.hash(t, w.targets.body("web")), plan.Spec.Plan.Targets[0].DesiredHash; got != want {
		t.Errorf("the target has hash %s, want %s", got, want)
	}
	if phases := slices.Compact(w.stored); !slices.Equal(phases, []string{"Created", "Running", "Succeeded"}) {
		t.Errorf("the observer was told of %v", phases)
	}
	if got := w.claimNow(); got != "" {
		t.Errorf("the target is still held by %s", got)
	}
	if len(plan.Status.Conditions) == 0 || plan.Status.Conditions[0].Reason != "Succeeded" {
		t.Errorf("the conditions are %+v", plan.Status.Conditions)
	}
}

// D19 of the review of remediation.
func TestAPlanGivesTheFieldsOfItsWriteBack(t *testing.T) {
	image := func(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`),
		}
	}
	const verified = "as it should be, and healthy"
	tests := map[string]struct {
		world   func(*world)
		stored  []string
		owner   string
		message string
	}{
		"to the field manager of the revision": {func(*world) {}, []string{"put web", "fields of web"}, "helm", verified},
		"to none when the revision knows none": {func(w *world) { w.managers = nil }, []string{"put web", "fields of web"}, "", verified},
		"a patch without an answer fails no step": {
			func(w *world) {
				w.targets.fails = func(call string) error {
					if call == "patch" {
						return errNetwork
					}
					return nil
				}
			}, []string{"put web"}, FieldManager, verified + "; its fields could not be given back to their field managers: connection reset",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.managers = []metav1.ManagedFieldsEntry{image("helm", metav1.ManagedFieldsOperationApply)}
			w.targets.metadata("web")["managedFields"] = []any{w.targets.parse(w.targets.encode(image(FieldManager, metav1.ManagedFieldsOperationUpdate)))}
			test.world(w)
			if out := w.finish(); !out.Done {
				t.Fatalf("the plan waits: %s", out.Why)
			}
			if step := w.now().Status.Steps[0]; step.State != v1alpha1.StepVerified || step.Message != test.message {
				t.Errorf("the step is %s: %s", step.State, step.Message)
			}
			if diff := cmp.Diff(test.stored, w.targets.stored); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			metadata, err := metadataOf([]byte(w.targets.body("web")))
			if err != nil {
				t.Fatal(err)
			}
			owner := ""
			for _, e := range metadata.ManagedFields {
				owner += e.Manager
			}
			if owner != test.owner {
				t.Errorf("the image belongs to %q, want %q", owner, test.owner)
			}
		})
	}
}

func TestAPlanThatIsGoneIsDone(t *testing.T) {
	w := newWorld(t)
	if out, err := w.Carry(t.Context(), types.NamespacedName{Namespace: "shop", Name: "gone"}); err != nil || !out.Done {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestAPlanThatCannotBeReadOrStoredIsAnError(t *testing.T) {
	for _, call := range []string{"get RemediationPlan", "update RemediationPlan"} {
		w := newWorld(t)
		w.failing(call, errNetwork)
		if out, err := w.Carry(t.Context(), w.key()); !errors.Is(err, errNetwork) {
			t.Errorf("%s fails: got %+v, %v", call, out, err)
		}
	}
}

func TestAPlanThatAnotherWriterChangedIsReadAgain(t *testing.T) {
	for name, err := range map[string]error{"changed": errConflict, "deleted": errNotFound} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.times(1, "update RemediationPlan", err)
			if out := w.carry(); out.Done || !out.Until.Equal(epoch) || out.Why != "another writer changed the plan" {
				t.Errorf("got %+v", out)
			}
			if len(w.stored) > 0 {
				t.Errorf("the observer was told of %v", w.stored)
			}
			w.finish()
			if diff := cmp.Diff([]string{"put web"}, w.targets.stored); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// An executor that may have lost its lease sends nothing more.
func TestACanceledContextEndsTheRunBeforeTheWrite(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.granted = cancel
	if out, err := w.Carry(ctx, w.key()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", out, err)
	}
	if len(w.targets.stored) > 0 {
		t.Errorf("stored are %v", w.targets.stored)
	}
}

func TestWithoutAnAnswerTheTargetTellsAndNothingIsWrittenTwice(t *testing.T) {
	w := newWorld(t)
	w.targets.lost = on("put", errNetwork)
	w.finish()
	step := w.now().Status.Steps[0]
	if step.State != v1alpha1.StepVerified || step.Result.Origin != v1alpha1.ResultRecovered {
		t.Errorf("the step is %s, known by %+v: %q", step.State, step.Result, step.Logs)
	}
	if diff := cmp.Diff([]string{"put web"}, w.targets.stored); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// What was learned of a step is forgotten after a conflict: the dry run is made
// again, from the version that is there then.
func TestAConflictHasTheTargetReadAndTriedAgain(t *testing.T) {
	w := newWorld(t)
	conflicts := 0
	w.targets.fails = func(call string) error {
		if call == "put" && conflicts == 0 {
			conflicts++
			w.targets.moves("web")
			return errConflict
		}
		return nil
	}
	w.finish()
	step := w.now().Status.Steps[0]
	if step.State != v1alpha1.StepVerified || step.Attempts == 0 || step.Result.ResourceVersion != "43" {
		t.Errorf("the step is %s after %d attempts, %+v: %q", step.State, step.Attempts, step.Result, step.Logs)
	}
}

// A plan is halted while its write is under way: the write is fenced, and only then
// does the plan end.
func TestAHaltFencesAWriteWithoutAnAnswer(t *testing.T) {
	w := newWorld(t)
	w.targets.fails = func(call string) error {
		if call == "put" && len(w.targets.stored) == 0 && w.now().Status.Phase == v1alpha1.PlanRunning {
			w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Mode = v1alpha1.PolicyModeHalted })
			return errNetwork
		}
		return nil
	}
	w.finish()
	status := w.now().Status
	if step := status.Steps[0]; status.Phase != v1alpha1.PlanCanceled || step.State != v1alpha1.StepFenced || step.Fence != "42" {
		t.Errorf("plan %s, step %s: %q", status.Phase, step.State, step.Logs)
	}
	if diff := cmp.Diff([]string{"fence web"}, w.targets.stored); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.verify(4) // created, fenced, the step, halted
}

// reasons are what a plan says holds it back, over a run.
func TestWhatHoldsAPlanBackIsSaidUntilItGoesOn(t *testing.T) {
	t.Run("a decision that cannot be recorded", func(t *testing.T) {
		w := newWorld(t)
		w.failing("update RemediationLedger", errNetwork)
		for range 2 { // it says so once
			if _, err := w.Carry(t.Context(), w.key()); err == nil {
				t.Fatal("a decision that is not recorded is stored")
			}
		}
		status := w.now().Status
		if !strings.HasPrefix(status.DeferralReason, unrecorded) || status.Phase != "" || len(w.writes("update RemediationPlan")) != 1 {
			t.Errorf("plan %q says %q, in %v", status.Phase, status.DeferralReason, w.calls)
		}
		w.fails, w.reasons = nil, nil
		w.finish()
		if status := w.now().Status; w.reasons[0] != "" || status.DeferralReason != "" || status.Phase != v1alpha1.PlanSucceeded {
			t.Errorf("plan %s says %q", status.Phase, status.DeferralReason)
		}
	})
	t.Run("a write without an answer", func(t *testing.T) {
		w := newWorld(t)
		w.targets.fails = func(call string) error {
			if call == "put" || call == "get" && w.now().Status.Steps[0].Intent != nil {
				return errNetwork
			}
			return nil
		}
		w.carry()
		w.clock.now = epoch.Add(explained)
		if w.carry(); w.now().Status.DeferralReason != "" {
			t.Errorf("after a minute it says %q already", w.now().Status.DeferralReason)
		}
		w.clock.now = epoch.Add(explained + time.Second)
		w.carry()
		writes := len(w.calls)
		w.carry() // it says so once
		if got := w.now().Status.DeferralReason; got != "waiting: the target could not be read" || len(w.calls) != writes {
			t.Errorf("it says %q, in %v", got, w.calls[writes:])
		}
		w.targets.fails, w.reasons = nil, nil
		w.clock.now = epoch.Add(2 * explained)
		w.carry()
		if status := w.now().Status; w.reasons[0] != "" || status.DeferralReason != "" || status.Phase != v1alpha1.PlanSucceeded {
			t.Errorf("plan %s says %q", status.Phase, status.DeferralReason)
		}
	})
	t.Run("a target that is not ready", func(t *testing.T) {
		w := newWorld(t)
		w.changePolicy(func(p *v1alpha1.RemediationPolicy) { p.Spec.Health.Timeout.Duration = time.Hour })
		w.supersedes()
		w.targets.ill = true
		w.carry()
		w.clock.now = epoch.Add(2 * explained)
		w.carry()
		if got := w.now().Status.DeferralReason; got != "waiting: it is not ready yet: 0 of 3 replicas are available" {
			t.Errorf("it says %q: %+v", got, w.now().Status.Steps)
		}
		w.targets.ill = false
		w.carry()
		if status := w.now().Status; status.DeferralReason != "" || status.Phase != v1alpha1.PlanSucceeded {
			t.Errorf("plan %s says %q", status.Phase, status.DeferralReason)
		}
	})
	t.Run("a limit", func(t *testing.T) {
		w := newWorld(t)
		w.guards.frozen["web"] = "SpecGuard/shop"
		w.carry()
		if got := w.now().Status.DeferralReason; !strings.Contains(got, "mass drift") {
			t.Errorf("it says %q", got)
		}
		delete(w.guards.frozen, "web")
		w.clock.now = epoch.Add(time.Second)
		w.carry()
		if status := w.now().Status; status.DeferralReason != "" || status.Phase != v1alpha1.PlanSucceeded {
			t.Errorf("plan %s says %q", status.Phase, status.DeferralReason)
		}
	})
}

// Only what has written, or is about to, is explained, and only once.
func TestWhatAPlanWaitsForIsExplainedOnlyWhenAWriteHangs(t *testing.T) {
	old, young := epoch.Add(-explained-time.Second), epoch.Add(-explained)
	intent := func(at time.Time) v1alpha1.PlanStep {
		s := v1alpha1.PlanStep{State: v1alpha1.StepIntent, Intent: &v1alpha1.StepIntentRecord{}}
		s.Intent.StorageTime.Time = at
		return s
	}
	applied := func(at time.Time) v1alpha1.PlanStep {
		s := v1alpha1.PlanStep{State: v1alpha1.StepApplied, Intent: intent(old).Intent, Result: &v1alpha1.StepResult{}}
		s.Result.RecordTime.Time = at
		return s
	}
	verified := applied(old)
	verified.State = v1alpha1.StepVerified
	unrecorded := func(at time.Time) v1alpha1.PlanStep {
		return v1alpha1.PlanStep{State: v1alpha1.StepSkipped, CompletionTime: &metav1.Time{Time: at}}
	}
	recorded := unrecorded(old)
	recorded.Evidence = &v1alpha1.StepEvidence{Sequence: 1}
	const why = "it hangs"
	tests := map[string]struct {
		phase  v1alpha1.PlanPhase
		before string
		why    string
		step   v1alpha1.PlanStep
		want   string
	}{
		"a write that hangs":                    {v1alpha1.PlanRunning, "", why, intent(old), "waiting: it hangs"},
		"a write that hangs while a plan ends":  {v1alpha1.PlanSealing, "", why, intent(old), "waiting: it hangs"},
		"a target that is not healthy for long": {v1alpha1.PlanRunning, "", why, applied(old), "waiting: it hangs"},
		"a write of a minute ago":               {v1alpha1.PlanRunning, "", why, intent(young), ""},
		"a target of a minute ago":              {v1alpha1.PlanRunning, "", why, applied(young), ""},
		"a step without a record":               {v1alpha1.PlanSealing, "", why, unrecorded(old), "waiting: it hangs"},
		"a step that ended a minute ago":        {v1alpha1.PlanSealing, "", why, unrecorded(young), ""},
		"a step that has its record":            {v1alpha1.PlanSealing, "", why, recorded, ""},
		"a step that has ended":                 {v1alpha1.PlanRunning, "", why, verified, ""},
		"a step whose intent is lost":           {v1alpha1.PlanRunning, "", why, v1alpha1.PlanStep{State: v1alpha1.StepIntent}, ""},
		"a step whose result is lost":           {v1alpha1.PlanRunning, "", why, v1alpha1.PlanStep{State: v1alpha1.StepApplied}, ""},
		"a plan that says something already":    {v1alpha1.PlanRunning, "the window is closed", why, intent(old), "the window is closed"},
		// The plan went on to show a limit or a window, while it waited for a record that the store had lost.
		"a plan that says what it waited for before its step had no record": {v1alpha1.PlanRunning, "the window is closed", why, unrecorded(old), "waiting: it hangs"},
		"a plan that was deferred before its step had no record":            {v1alpha1.PlanDeferred, "it waits for a person to execute it", why, unrecorded(old), "waiting: it hangs"},
		"a plan that says already that its step has no record":              {v1alpha1.PlanRunning, "waiting: it hung", why, unrecorded(old), "waiting: it hung"},
		"a plan that was deferred before its step ended a minute ago":       {v1alpha1.PlanDeferred, "the window is closed", why, unrecorded(young), "the window is closed"},
		"a plan that waits without a reason":                                {v1alpha1.PlanRunning, "", "", intent(old), ""},
		"a plan that is paused":                                             {v1alpha1.PlanPaused, "", why, intent(old), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.open()
			r.plan.Status = v1alpha1.RemediationPlanStatus{Phase: test.phase, DeferralReason: test.before, Steps: []v1alpha1.PlanStep{test.step}}
			if err := r.explainWaiting(t.Context(), test.why); err != nil {
				t.Fatal(err)
			}
			if got := r.plan.Status.DeferralReason; got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

// supersedes lets the plan go by the policy as it is now.
func (w *world) supersedes() {
	w.Helper()
	policy := &v1alpha1.RemediationPolicy{}
	read(w, types.NamespacedName{Name: "production"}, policy)
	change(w, w.key(), &v1alpha1.RemediationPlan{}, func(p *v1alpha1.RemediationPlan) { p.Spec.Plan.Policy.Digest = digestOfPolicy(policy) })
}

func TestAnEffectThatThisVersionDoesNotKnowIsAnError(t *testing.T) {
	w := newWorld(t)
	if err := w.open().carry(t.Context(), protocol.Done{}); err == nil {
		t.Error("it is carried out")
	}
}
