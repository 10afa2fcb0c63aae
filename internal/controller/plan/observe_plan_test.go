// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// at is a time after noon.
func at(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(d)} }

// fixed is a clock that stands.
type fixed struct {
	now  time.Time
	skew time.Duration
}

func (f *fixed) Now() time.Time { return f.now }

func (f *fixed) Skew() time.Duration { return f.skew }

// watcher is an Observer whose output is kept.
type watcher struct {
	*Observer
	t        *testing.T
	registry *prometheus.Registry
	log      bytes.Buffer
	events   *events.FakeRecorder
	told     []notify.Event
	clock    *fixed
	plan     *v1alpha1.RemediationPlan
}

func nightly() *v1alpha1.RemediationPolicy {
	return &v1alpha1.RemediationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "policy-uid"}}
}

func readerOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	return fakeclient.NewBuilder(types).WithObjects(objects...).Build()
}

func watch(t *testing.T) *watcher {
	t.Helper()
	w := &watcher{t: t, registry: prometheus.NewPedanticRegistry(), events: events.NewFakeRecorder(100), clock: &fixed{now: noon}, plan: planOf(2)}
	metrics, err := NewMetrics(w.registry)
	if err != nil {
		t.Fatal(err)
	}
	handler := slog.NewJSONHandler(&w.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	w.Observer = &Observer{
		Log: logr.FromSlogHandler(handler), Recorder: w.events, Metrics: metrics, Policies: readerOf(t, nightly()), Time: w.clock,
		Notify: func(p *v1alpha1.RemediationPolicy, e notify.Event) {
			if p.Name != e.Policy {
				t.Errorf("%s is told of %s", p.Name, e.Policy)
			}
			w.told = append(w.told, e)
		},
	}
	return w
}

// planOf so many Deployments that nobody has looked at.
func planOf(targets int) *v1alpha1.RemediationPlan {
	p := &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plan-1", UID: "plan-uid", Generation: 1}}
	p.Spec.Plan = v1alpha1.PlannedRemediation{
		Policy: v1alpha1.PlanPolicy{Name: "nightly", UID: "policy-uid"}, EnvironmentName: "production",
		Strategy: v1alpha1.StrategyAllAtOnce, InitiatedBy: "system:auto", CorrelationID: "xyz-789", DriftReportID: "abc-123",
	}
	for i := range targets {
		name := []string{"web", "cart"}[i]
		p.Spec.Plan.Targets = append(p.Spec.Plan.Targets, v1alpha1.PlanTarget{
			BaselineTarget: v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, UID: name + "-uid",
			DriftedHash: "pl1:drifted", DesiredHash: "pl1:desired", Action: v1alpha1.ActionReconcile,
			Severity: v1alpha1.Severity{Level: v1alpha1.SeverityHigh}, DriftType: v1alpha1.DriftImage, FirstSeenTime: *at(-time.Minute),
		})
	}
	return p
}

// store has a change of the plan's status stored at a time after noon.
func (w *watcher) store(d time.Duration, change func(*v1alpha1.RemediationPlanStatus)) {
	before := w.plan.Status.DeepCopy()
	w.plan = w.plan.DeepCopy()
	change(&w.plan.Status)
	w.clock.now = noon.Add(d)
	w.Stored(w.plan, before)
	if protocol.Final(w.plan.Status.Phase) {
		w.Ended(w.plan)
	}
}

// run is a plan of which one target is put back and the other fails.
func (w *watcher) run() {
	w.store(0, func(s *v1alpha1.RemediationPlanStatus) {
		s.Phase, s.DeferralReason = v1alpha1.PlanDeferred, "MaxPerHour: 10 of 10"
	})
	w.store(time.Second, func(s *v1alpha1.RemediationPlanStatus) {
		s.Phase, s.DeferralReason, s.StartTime = v1alpha1.PlanRunning, "", at(time.Second)
		s.Steps = []v1alpha1.PlanStep{{Index: 0, State: v1alpha1.StepReserved, StartTime: at(time.Second)}, {Index: 1, State: v1alpha1.StepPlanned}}
	})
	// D25 of the review of remediation: the waits of a plan that runs were not counted.
	w.store(time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.DeferralReason = "the window is closed" })
	w.store(time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.DeferralReason = "" })
	w.store(2*time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.Steps[0].State = v1alpha1.StepIntent })
	w.store(3*time.Second, func(s *v1alpha1.RemediationPlanStatus) {
		s.Steps[0].State, s.Steps[0].Result = v1alpha1.StepApplied, &v1alpha1.StepResult{Hash: "pl1:desired"}
	})
	w.store(5*time.Second, func(s *v1alpha1.RemediationPlanStatus) {
		s.Steps[0].State, s.Steps[0].CompletionTime, s.Steps[0].Message = v1alpha1.StepVerified, at(5*time.Second), "it is as authorized, and ready"
	})
	w.store(6*time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.Phase = v1alpha1.PlanPaused })
	w.plan.Generation = 3
	w.store(7*time.Second, func(s *v1alpha1.RemediationPlanStatus) { s.Phase = v1alpha1.PlanRunning })
	w.store(8*time.Second, func(s *v1alpha1.RemediationPlanStatus) {
		s.Steps[1].State, s.Steps[1].StartTime = v1alpha1.StepIntent, at(7*time.Second)
	})
	w.store(9*time.Second, func(s *v1alpha1.RemediationPlanStatus) {
		s.Steps[1].State, s.Steps[1].CompletionTime = v1alpha1.StepFailed, at(9*time.Second)
		s.Steps[1].Reason, s.Steps[1].Message = v1alpha1.ReasonUnhealthy, "1 of 3 pods is ready"
	})
	w.store(10*time.Second, func(s *v1alpha1.RemediationPlanStatus) {
		s.Phase, s.CompletionTime = v1alpha1.PlanPartialSuccess, at(10*time.Second)
		s.Counts = v1alpha1.PlanCounts{Total: 2, Succeeded: 1, Failed: 1}
	})
}

// hasSeedKeys checks what every line about a target has to have.
func (w *watcher) hasSeedKeys() {
	w.t.Helper()
	keys := []string{
		"event", "plan_id", "target_id", "environment", "action", "drift_type", "severity",
		"duration_ms", "status", "previous_digest", "current_digest", "correlation_id", "drift_report_id",
	}
	lines := 0
	for line := range strings.Lines(w.log.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			w.t.Fatal(err)
		}
		if got["event"] != "remediation.target.completed" {
			continue
		}
		lines++
		for _, key := range keys {
			if _, ok := got[key]; !ok {
				w.t.Errorf("%s is missing in %s", key, line)
			}
		}
	}
	if lines != 2 {
		w.t.Errorf("%d lines tell of targets that are done, want 2", lines)
	}
}

// sum of all samples of a histogram.
func (w *watcher) sum(name string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				sum += m.GetHistogram().GetSampleSum()
			}
		}
	}
	return sum
}

// noted are the Events that were made.
func (w *watcher) noted() []string {
	var out []string
	for len(w.events.Events) > 0 {
		out = append(out, <-w.events.Events)
	}
	return out
}
