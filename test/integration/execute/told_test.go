// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// logged is what a process logs, as JSON.
type logged struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(line)
}

func (l *logged) logger() logr.Logger { return logr.FromSlogHandler(slog.NewJSONHandler(l, nil)) }

// of are the lines about an event of a plan; an executor carries on what others left,
// and tells of that too.
func (l *logged) of(t *testing.T, plan *v1alpha1.RemediationPlan, event string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for line := range strings.Lines(l.lines.String()) {
		var keys map[string]any
		if err := json.Unmarshal([]byte(line), &keys); err != nil {
			t.Fatal(err)
		}
		if keys["event"] == event && keys["plan_id"] == string(plan.UID) {
			found = append(found, keys)
		}
	}
	return found
}

// figure is the value of a metric, of a histogram how often it was observed. Labels
// are "name=value"; without a metric of them it is -1.
func figure(t testing.TB, registry *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && has(m, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

func has(m *dto.Metric, labels []string) bool {
	got := map[string]bool{}
	for _, l := range m.GetLabel() {
		got[l.GetName()+"="+l.GetValue()] = true
	}
	for _, l := range labels {
		if !got[l] {
			return false
		}
	}
	return true
}

// One repair, as it is seen by whoever reads metrics, logs, Events and the plan itself.
func TestWhatIsSeenOfARepair(t *testing.T) {
	made, carried, log := prometheus.NewRegistry(), prometheus.NewRegistry(), &logged{}
	startAssessor(t, func(s *assessor.Setup) { s.Registry = made })
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	policy := w.policy(busyWriters)
	plan := w.onlyPlan()
	severity := strings.ToLower(string(plan.Spec.Plan.Targets[0].Severity.Level))
	environment := "environment=" + w.environment
	w.Eventually("one drift is pending before it is put back", func() error {
		if n := figure(t, made, "plumbline_drift_items_pending_remediation", environment, "severity="+severity); n != 1 {
			return fmt.Errorf("%g are", n)
		}
		return nil
	})
	startExecutor(t, newEvidence(t), func(s *executor.Setup) { s.Registry, s.Log = carried, log.logger() })
	if plan = w.Ended(plan); plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", remediation.Describe(plan))
	}
	for name, labels := range map[string][]string{
		"plumbline_remediation_plans_total":                 {environment, "policy=" + policy.Name, "status=succeeded"},
		"plumbline_remediation_targets_total":               {environment, "action=reconcile", "status=succeeded"},
		"plumbline_remediation_plan_duration_seconds":       {environment, "strategy=rolling"},
		"plumbline_remediation_target_duration_seconds":     {environment, "action=reconcile"},
		"plumbline_remediation_detection_to_action_seconds": {environment, "severity=" + severity},
	} {
		// What was stored is told after it was stored, so a reader may be earlier.
		w.Eventually(name+" counts it", func() error {
			if n := figure(t, carried, name, labels...); n != 1 {
				return fmt.Errorf("of %v it is %g, want 1", labels, n)
			}
			return nil
		})
	}
	w.Eventually("nothing is pending any more", func() error {
		if n := figure(t, made, "plumbline_drift_items_pending_remediation", environment, "severity="+severity); n > 0 {
			return fmt.Errorf("%g are", n)
		}
		return nil
	})
	w.seenInEvents(plan)
	w.seenInTheLog(log, plan)
	step := plan.Status.Steps[0]
	if step.CompletionTime == nil || step.StartTime == nil || len(step.Logs) < 3 || step.Result == nil || step.Result.Hash != plan.Spec.Plan.Targets[0].DesiredHash {
		t.Errorf("the step is %+v", step)
	}
	if diff := cmp.Diff(v1alpha1.PlanCounts{Total: 1, Succeeded: 1}, plan.Status.Counts); diff != "" || plan.Spec.Plan.InitiatedBy != "system:auto" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// seenInTheLog checks the line about a target with all of its keys.
func (w *world) seenInTheLog(log *logged, plan *v1alpha1.RemediationPlan) {
	w.t.Helper()
	t := w.t.(*testing.T)
	w.Eventually("the log tells the end of the plan", func() error {
		if n := len(log.of(t, plan, "remediation.plan.succeeded")); n != 1 {
			return fmt.Errorf("%d lines tell it", n)
		}
		return nil
	})
	lines := log.of(t, plan, "remediation.target.completed")
	if len(lines) != 1 {
		t.Fatalf("%d lines tell that a target is completed", len(lines))
	}
	target := &plan.Spec.Plan.Targets[0]
	for key, want := range map[string]any{
		"target_id": target.UID, "environment": w.environment, "action": "reconcile",
		"drift_type": "image", "severity": strings.ToLower(string(target.Severity.Level)), "status": "succeeded",
		"previous_digest": target.DriftedHash, "current_digest": target.DesiredHash, "correlation_id": plan.Spec.Plan.CorrelationID,
		"initiated_by": "system:auto",
	} {
		if lines[0][key] != want {
			t.Errorf("%s is %v, want %v", key, lines[0][key], want)
		}
	}
	step := plan.Status.Steps[0]
	if took := lines[0]["duration_ms"]; took != float64(step.CompletionTime.Sub(step.StartTime.Time).Milliseconds()) {
		t.Errorf("it took %v ms, by the plan %s", took, step.CompletionTime.Sub(step.StartTime.Time))
	}
	for _, event := range []string{"remediation.plan.started", "remediation.target.started"} {
		if n := len(log.of(t, plan, event)); n != 1 {
			t.Errorf("%d lines tell %s", n, event)
		}
	}
}

// seenInEvents waits for the Event that the executor's own account may write.
func (w *world) seenInEvents(plan *v1alpha1.RemediationPlan) {
	w.t.Helper()
	w.Eventually("the object has its Event", func() error {
		var list eventsv1.EventList
		if err := admin.List(w.t.Context(), &list, client.InNamespace(w.Name)); err != nil {
			return err
		}
		found := map[string]bool{}
		for i := range list.Items {
			if e := &list.Items[i]; e.Related != nil {
				found[e.Regarding.Kind+" "+e.Regarding.Name+" "+e.Reason+" by "+e.Related.Kind+" "+e.Related.Name] = true
			}
		}
		if want := "Deployment web RemediationVerified by RemediationPlan " + plan.Name; !found[want] {
			return fmt.Errorf("no %s among %v", want, found)
		}
		return nil
	})
}
