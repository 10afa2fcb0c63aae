// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLogOfAPlan(t *testing.T) {
	w := watch(t)
	w.run()
	golden.Check(t, filepath.Join("testdata", "log.golden"), w.log.String())
	w.hasSeedKeys()
}

func TestTheLogPageNamesEveryEventAndKey(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "logs.md"))
	if err != nil {
		t.Fatal(err)
	}
	w := watch(t)
	w.run()
	for line := range strings.Lines(w.log.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		for key := range got {
			if key != slog.LevelKey && !strings.Contains(string(page), "`"+key+"`") {
				t.Errorf("the page does not name the key %s", key)
			}
		}
		if !strings.Contains(string(page), "`"+got["event"].(string)+"`") {
			t.Errorf("the page does not name %s", got["event"])
		}
	}
}

func TestTheMetricsOfAPlan(t *testing.T) {
	w := watch(t)
	w.run()
	want := `
# HELP plumbline_remediation_plans_total Plans that ended, by the phase they ended in.
# TYPE plumbline_remediation_plans_total counter
plumbline_remediation_plans_total{environment="production",policy="nightly",status="partial_success"} 1
# HELP plumbline_remediation_rate_limit_hits_total Times that a plan began to wait for a limit, a window or a brake.
# TYPE plumbline_remediation_rate_limit_hits_total counter
plumbline_remediation_rate_limit_hits_total{policy="nightly"} 2
# HELP plumbline_remediation_targets_total Targets that a plan is done with, by how: succeeded, skipped, failed, fenced.
# TYPE plumbline_remediation_targets_total counter
plumbline_remediation_targets_total{action="reconcile",environment="production",status="failed"} 1
plumbline_remediation_targets_total{action="reconcile",environment="production",status="succeeded"} 1
`
	if err := testutil.GatherAndCompare(w.registry, strings.NewReader(want),
		"plumbline_remediation_plans_total", "plumbline_remediation_rate_limit_hits_total", "plumbline_remediation_targets_total"); err != nil {
		t.Error(err)
	}
	for name, sum := range map[string]float64{
		"plumbline_remediation_plan_duration_seconds":       9,
		"plumbline_remediation_target_duration_seconds":     4 + 2,
		"plumbline_remediation_detection_to_action_seconds": 62 + 68,
	} {
		if got := w.sum(name); got != sum {
			t.Errorf("%s: the sum is %v, want %v", name, got, sum)
		}
	}
}

func TestTheEventsOfAPlan(t *testing.T) {
	w := watch(t)
	w.run()
	want := []string{
		"Normal PlanDeferred the plan is Deferred: MaxPerHour: 10 of 10",
		"Normal PlanRunning the plan is Running",
		"Normal RemediationVerified plan plan-1: it is as authorized, and ready",
		"Normal PlanPaused the plan is Paused",
		"Normal PlanRunning the plan is Running",
		"Warning RemediationFailed plan plan-1: 1 of 3 pods is ready",
		"Warning PlanPartialSuccess the plan is PartialSuccess",
	}
	if diff := cmp.Diff(want, w.noted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The assessor makes an Event about each plan that it creates.
func TestAPlanThatIsCreatedIsLoggedWithoutAnEvent(t *testing.T) {
	w := watch(t)
	w.plan.Status = v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCreated}
	w.Stored(w.plan, &v1alpha1.RemediationPlanStatus{})
	if got := w.noted(); len(got) > 0 {
		t.Errorf("Events were made: %q", got)
	}
	if !strings.Contains(w.log.String(), "remediation.plan.created") {
		t.Errorf("the log says %s", w.log.String())
	}
}

// The Event about its target, and the one about its end, tell that it has begun.
func TestAPlanThatBeginsAtOnceIsLoggedWithoutAnEvent(t *testing.T) {
	w := watch(t)
	w.plan.Status = v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanCreated}
	w.store(time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.Phase, s.StartTime = v1alpha1.PlanRunning, at(time.Second) })
	if got := w.noted(); len(got) > 0 {
		t.Errorf("Events were made: %q", got)
	}
	if !strings.Contains(w.log.String(), "remediation.plan.started") {
		t.Errorf("the log says %s", w.log.String())
	}
}

func TestWhatIsToldOfAPlan(t *testing.T) {
	w := watch(t)
	w.run()
	var got []notify.EventType
	for _, e := range w.told {
		got = append(got, e.Type)
	}
	if diff := cmp.Diff([]notify.EventType{notify.PlanStarted, notify.PlanStarted, notify.PlanFailed}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if w.told[0].ID() == w.told[1].ID() {
		t.Error("a second start after a pause has the id of the first")
	}
	last := w.told[2]
	if !last.Time.Equal(at(10*time.Second).Time) || last.Reason != "1 of 3 pods is ready" || last.Counts != (notify.Counts{Total: 2, Succeeded: 1, Failed: 1}) {
		t.Errorf("the end is told as %+v", last)
	}
	targets := []notify.Target{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Reason: "Verified"},
		{Kind: "Deployment", Namespace: "shop", Name: "cart", Reason: "Failed Unhealthy"},
	}
	if diff := cmp.Diff(targets, last.Targets); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A receiver that keeps notifications has the digests of records where nobody rewrites them.
func TestANotificationNamesTheSignedRecordOfTheLastDecision(t *testing.T) {
	w := watch(t)
	if e := NotificationOf(w.plan, notify.PlanCreated, at(0).Time); e.Evidence != nil {
		t.Errorf("before the first decision it names %+v", e.Evidence)
	}
	w.plan.Status.Decision = &v1alpha1.PlanDecision{StepEvidence: v1alpha1.StepEvidence{Sequence: 7, Digest: "sha256:7"}}
	want := &notify.Record{Chain: w.plan.Spec.Plan.Policy.UID, Sequence: 7, Digest: "sha256:7"}
	if diff := cmp.Diff(want, NotificationOf(w.plan, notify.PlanFailed, at(0).Time).Evidence); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHowAPlanEnds(t *testing.T) {
	tests := map[v1alpha1.PlanPhase][]notify.EventType{
		v1alpha1.PlanSucceeded: {notify.PlanCompleted}, v1alpha1.PlanFailed: {notify.PlanFailed}, v1alpha1.PlanPartialSuccess: {notify.PlanFailed},
		// D1 of the review of remediation: nobody was told of a plan that skipped all its steps.
		v1alpha1.PlanSkipped: {notify.PlanFailed},
		// Who canceled it knows, and one that is superseded did nothing.
		v1alpha1.PlanCanceled: nil, v1alpha1.PlanSuperseded: nil,
	}
	for phase, want := range tests {
		t.Run(string(phase), func(t *testing.T) {
			w := watch(t)
			w.store(0, func(s *v1alpha1.RemediationPlanStatus) { s.Phase, s.CompletionTime = phase, at(0) })
			var got []notify.EventType
			for _, e := range w.told {
				got = append(got, e.Type)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := testutil.ToFloat64(w.Metrics.plans.WithLabelValues("production", "nightly", telemetry.SpellWord(string(phase)))); n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

func TestNobodyIsToldForAPolicyThatIsGone(t *testing.T) {
	w := watch(t)
	w.Policies = readerOf(t)
	w.run()
	if len(w.told) > 0 {
		t.Errorf("told %v", w.told)
	}
	w.Policies, w.Notify = readerOf(t, nightly()), nil
	w.run() // nor is anybody when there is nobody to tell
}

func TestAnEventIsNeverTooLongForTheAPIServer(t *testing.T) {
	w := watch(t)
	w.store(0, func(s *v1alpha1.RemediationPlanStatus) {
		s.Phase, s.EndedBy, s.CompletionTime = v1alpha1.PlanCanceled, strings.Repeat("ü", 512), at(0)
	})
	for _, e := range w.noted() {
		if len(e) > maxNote+len("Normal PlanCanceled ") {
			t.Errorf("%d bytes", len(e))
		}
	}
}

func TestABreakerIsToldWhenItTurns(t *testing.T) {
	w := watch(t)
	turn := func(state v1alpha1.BreakerState, failures int32) {
		l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
		l.Status.Breakers = []v1alpha1.LedgerBreaker{
			{PolicyUID: "policy-uid", State: state, Failures: failures}, {PolicyUID: "gone", State: state},
		}
		w.LedgerStored(l)
	}
	turn(v1alpha1.BreakerClosed, 0)
	turn(v1alpha1.BreakerOpen, 3)
	turn(v1alpha1.BreakerOpen, 3)
	turn(v1alpha1.BreakerHalfOpen, 3)
	turn(v1alpha1.BreakerClosed, 0)
	want := []string{
		"Warning BreakerOpen the circuit breaker is Open after 3 failures in a row",
		"Normal BreakerHalfOpen the circuit breaker is HalfOpen after 3 failures in a row",
		"Normal BreakerClosed the circuit breaker is Closed after 0 failures in a row",
	}
	if diff := cmp.Diff(want, w.noted()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	golden.Check(t, filepath.Join("testdata", "breaker.golden"), w.log.String())
}

func TestRecall(t *testing.T) {
	var plans []client.Object
	for name, p := range map[string]struct {
		phase v1alpha1.PlanPhase
		ended *metav1.Time
	}{
		"lately":   {v1alpha1.PlanSucceeded, at(-time.Minute)},
		"long-ago": {v1alpha1.PlanFailed, at(-2 * time.Hour)},
		"canceled": {v1alpha1.PlanCanceled, at(-time.Minute)},
		"running":  {v1alpha1.PlanRunning, nil},
	} {
		plan := planOf(1)
		plan.Name, plan.UID = name, plan.UID+"-"+plan.UID
		plan.Status.Phase, plan.Status.CompletionTime = p.phase, p.ended
		plans = append(plans, plan)
	}
	w := watch(t)
	r := &Recall{Plans: readerOf(t, plans...), Observer: w.Observer, Since: time.Hour, Log: logr.Discard()}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.told) != 1 || w.told[0].Plan.Name != "lately" || w.told[0].Type != notify.PlanCompleted || !w.told[0].Time.Equal(noon.Add(-time.Minute)) {
		t.Errorf("told %+v", w.told)
	}
	first := w.told[0].ID()
	w.told = nil
	plan := plans[slices.IndexFunc(plans, func(o client.Object) bool { return o.GetName() == "lately" })].(*v1alpha1.RemediationPlan)
	w.plan = plan.DeepCopy()
	w.plan.Status.Phase = v1alpha1.PlanRunning
	w.store(0, func(s *v1alpha1.RemediationPlanStatus) { s.Phase = v1alpha1.PlanSucceeded })
	if len(w.told) != 1 || w.told[0].ID() != first {
		t.Error("what is told again is not what was told")
	}
}

// The status could not be stored, and the executor tries again: one process tells the end
// once.
func TestAnEndIsToldOnceHoweverOftenItsAnnouncementIsTried(t *testing.T) {
	w := watch(t)
	w.run()
	want, log := len(w.told), w.log.String()
	w.noted()
	for range 3 {
		w.Ended(w.plan)
	}
	if len(w.told) != want || w.log.String() != log || len(w.noted()) > 0 {
		t.Errorf("%d notifications, want %d; the log goes on with %q", len(w.told), want, strings.TrimPrefix(w.log.String(), log))
	}
	// The mark is stored: no memory of the plan is left.
	w.Stored(w.plan, &w.plan.Status)
	if len(w.ends) > 0 {
		t.Errorf("the observer remembers %v", w.ends)
	}
}

// Each target of a plan has an Event that names the plan.
func TestAPlanThatSucceedsHasNoEventBesideThoseOfItsTargets(t *testing.T) {
	tests := map[string]struct {
		phase v1alpha1.PlanPhase
		want  []string
	}{
		"a success":      {v1alpha1.PlanSucceeded, []string{"Normal RemediationVerified plan plan-1: as it should be"}},
		"a cancellation": {v1alpha1.PlanCanceled, []string{"Normal RemediationVerified plan plan-1: as it should be", "Normal PlanCanceled the plan is Canceled"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.store(time.Second, func(s *v1alpha1.RemediationPlanStatus) {
				s.Steps = []v1alpha1.PlanStep{{Index: 0, State: v1alpha1.StepVerified, Message: "as it should be"}}
			})
			w.store(2*time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.Phase = tc.phase })
			if diff := cmp.Diff(tc.want, w.noted()); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}
