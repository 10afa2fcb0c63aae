// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/lag"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/internal/planning/planningtest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/test/harness/conditions"
)

func TestAPlanIsMadeAndTold(t *testing.T) {
	b := newBench(t)
	b.look()
	plans := b.plans()
	if len(plans) != 1 || plans[0].Spec.Plan.Targets[0].Name != "web" || plans[0].Labels[planner.LabelPolicy] != "auto" {
		t.Fatalf("plans are %+v", plans)
	}
	status := b.status()
	want := v1alpha1.PolicyTargets{Selected: 3, Drifted: 1, Eligible: 1, Healthy: 2}
	if status.Targets != want || status.LastPlanName != "shop/"+plans[0].Name || status.Digest != planner.Digest(&b.Policy.Spec) || status.ObservedGeneration != 2 {
		t.Errorf("status is %+v", status)
	}
	if got := b.events(); len(got) != 1 || !strings.HasPrefix(got[0], "Normal PlanCreated shop/"+plans[0].Name+": Deployment web") {
		t.Errorf("events are %v", got)
	}
	if len(b.told) != 1 || b.told[0].Type != notify.PlanCreated || b.told[0].Counts.Total != 1 || b.told[0].Targets[0].Name != "web" {
		t.Errorf("told %+v", b.told)
	}
	for _, key := range []string{`"remediation.plan.created"`, `"policy"="auto"`, `"environment"="production"`, `"drift_type"="image"`, `"severity"="critical"`, `"initiated_by"="system:auto"`, `"correlation_id"="` + plans[0].Spec.Plan.CorrelationID} {
		if !strings.Contains(b.log.String(), key) {
			t.Errorf("the log has no %s: %s", key, b.log.String())
		}
	}
	metrics := `
		# HELP plumbline_drift_items_pending_remediation Drifted objects that an active policy would remediate, or has a plan for, by severity.
		# TYPE plumbline_drift_items_pending_remediation gauge
		plumbline_drift_items_pending_remediation{environment="production",severity="critical"} 1
		plumbline_drift_items_pending_remediation{environment="production",severity="high"} 0
		plumbline_drift_items_pending_remediation{environment="production",severity="info"} 0
		plumbline_drift_items_pending_remediation{environment="production",severity="low"} 0
		plumbline_drift_items_pending_remediation{environment="production",severity="medium"} 0
		# HELP plumbline_effectiveness_chains_open Drifted objects that are left to people because repairs of them did not help, by the rule of the chain.
		# TYPE plumbline_effectiveness_chains_open gauge
		plumbline_effectiveness_chains_open{rule="forward_chain"} 0
		plumbline_effectiveness_chains_open{rule="history_unknown"} 0
		plumbline_effectiveness_chains_open{rule="regressions"} 0
		plumbline_effectiveness_chains_open{rule="too_many_repairs"} 0
		# HELP plumbline_remediation_plans_created_total Remediation plans that were made.
		# TYPE plumbline_remediation_plans_created_total counter
		plumbline_remediation_plans_created_total{environment="production",policy="auto",trigger="Immediate"} 1
	`
	if err := testutil.GatherAndCompare(b.registry, strings.NewReader(metrics)); err != nil {
		t.Error(err)
	}
	// A second look makes and tells nothing, and says why. It is not the last one: the
	// executor asks how many of the others are healthy.
	b.look()
	b.clock.SetTime(epoch.Add(lag.Most))
	if result := b.look(); result.RequeueAfter != underWayAgain {
		t.Errorf("the next look is in %s", result.RequeueAfter)
	}
	if len(b.plans()) != 1 || len(b.events()) != 0 || len(b.told) != 1 {
		t.Errorf("a second look: %d plans, told %+v", len(b.plans()), b.told)
	}
	if status := b.status(); !strings.Contains(status.WaitingFor, "1 UnderWay") {
		t.Errorf("it waits for %q", status.WaitingFor)
	}
}

func TestOnlyAnActivePolicyMakesPlans(t *testing.T) {
	tests := map[string]struct {
		change func(*planningtest.Cluster)
		ready  string
	}{
		"one that observes":          {func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeObserveOnly }, "True ObserveOnly"},
		"one that is halted":         {func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeHalted }, "False Halted"},
		"one of a mode of tomorrow":  {func(c *planningtest.Cluster) { c.Policy.Spec.Mode = "Dry" }, "False UnknownMode"},
		"one that only notifies":     {func(c *planningtest.Cluster) { c.Policy.Spec.Action = v1alpha1.ActionNotifyOnly }, "True Active"},
		"one without an Environment": {func(c *planningtest.Cluster) { c.Policy.Spec.EnvironmentName = "nowhere" }, "False UnknownEnvironment"},
		"one that is being deleted": {func(c *planningtest.Cluster) {
			c.Policy.DeletionTimestamp, c.Policy.Finalizers = &metav1.Time{Time: epoch}, []string{"x"}
		}, "True Active"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.change)
			b.look()
			ready := meta.FindStatusCondition(b.status().Conditions, v1alpha1.ConditionReady)
			if len(b.plans()) != 0 || ready == nil || string(ready.Status)+" "+ready.Reason != tc.ready {
				t.Errorf("%d plans, Ready is %+v", len(b.plans()), ready)
			}
		})
	}
}

func TestAStaleCacheNeverDoublesTheRoom(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) {
		for i := range 9 {
			c.Add(fmt.Sprint("calm-", i))
		}
		c.Drift("db", evil)
	})
	b.r.Source = &fresh{Live: &planning.Live{Reader: b.client}, stale: true}
	b.Policy.Spec.Safety.MaxTargetPercent = 10 // of twelve objects: one
	if err := b.client.Update(b.Context(), b.Policy); err != nil {
		t.Fatal(err)
	}
	b.look()
	// The other one, which needs the first, gets worse. By the cache alone there would
	// be room for it.
	worse := &v1alpha1.Baseline{}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.Baselines["web"]), worse); err != nil {
		t.Fatal(err)
	}
	worse.Status.Severity.Score = 99
	if err := b.client.Status().Update(b.Context(), worse); err != nil {
		t.Fatal(err)
	}
	b.look()
	if plans := b.plans(); len(plans) != 1 {
		t.Errorf("%d plans", len(plans))
	}
}

func TestAPlanThatIsThereAlreadyIsFine(t *testing.T) {
	b := newBench(t)
	b.r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewAlreadyExists(v1alpha1.GroupVersion.WithResource("remediationplans").GroupResource(), "x")
		},
	})
	b.look()
	if len(b.told) != 0 || len(b.events()) != 0 {
		t.Errorf("told %+v", b.told)
	}
}

func TestWhatCannotBeMadeIsTriedAgain(t *testing.T) {
	refused := errors.New("refused")
	b := newBench(t)
	b.r.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
	})
	if _, err := b.tryLook(); !errors.Is(err, refused) {
		t.Errorf("the error is %v", err)
	}
	if b.status().Digest == "" {
		t.Error("its status was not written")
	}
	b.r.Live = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refused },
	})
	b.r.Client = b.client
	if _, err := b.tryLook(); !errors.Is(err, refused) || len(b.plans()) != 0 {
		t.Errorf("without a look at what is under way: %v, %d plans", err, len(b.plans()))
	}
}

func TestPeopleAreToldOnceOfWhatTheyHaveToDecide(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) {
		c.Policy.Spec.MaximumDriftAge = &metav1.Duration{Duration: time.Hour}
		c.Drift("db", evil)
	})
	result := b.look()
	// web and db are twenty minutes old.
	if want := 40*time.Minute + time.Second; result.RequeueAfter != want {
		t.Errorf("it looks again in %s, want %s", result.RequeueAfter, want)
	}
	b.events()
	for _, p := range b.plans() { // what was made has ended, and so did nothing else
		if err := b.client.Delete(b.Context(), &p); err != nil {
			t.Fatal(err)
		}
	}
	b.told = nil
	b.clock.SetTime(epoch.Add(41 * time.Minute))
	b.look()
	events := b.events()
	if len(events) != 1 || !strings.HasPrefix(events[0], "Warning RemediationEscalated 2 drifted objects need a person: ") || !strings.Contains(events[0], "older than 1h0m0s") {
		t.Fatalf("events are %v", events)
	}
	if len(b.told) != 1 || b.told[0].Type != notify.PlanEscalated || b.told[0].Counts.Total != 2 || len(b.told[0].Targets) != 2 || b.told[0].Reason == "" {
		t.Fatalf("told %+v", b.told)
	}
	b.look()
	if len(b.told) != 1 || len(b.events()) != 0 {
		t.Error("it is told again")
	}
	// After a restart it is told once more, by the same id.
	before := b.told[0].ID()
	b.r.told = memory{}
	b.look()
	if len(b.told) != 2 || b.told[1].ID() != before {
		t.Errorf("after a restart: %+v", b.told)
	}
}

func TestAPolicyThatOnlyNotifiesNotifies(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) { c.Policy.Spec.Action = v1alpha1.ActionNotifyOnly })
	b.look()
	b.look()
	if len(b.told) != 1 || b.told[0].Type != notify.PlanEscalated || b.told[0].Reason != "the policy only notifies" {
		t.Errorf("told %+v", b.told)
	}
}

func TestConditions(t *testing.T) {
	const notDegraded, some = "Degraded=False NotDegraded", "TargetsSelected=True WholeEnvironment"
	ledgerWith := func(state v1alpha1.BreakerState) *v1alpha1.RemediationLedger {
		probe := v1alpha1.StepReference{PlanUID: "plan-uid"}
		return &v1alpha1.RemediationLedger{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: "production"},
			Status: v1alpha1.RemediationLedgerStatus{
				Sequence: 1, Breakers: []v1alpha1.LedgerBreaker{{PolicyUID: "policy-uid", State: state, Failures: 3, Probe: &probe}},
				Entries: []v1alpha1.LedgerEntry{{StepReference: probe, PolicyUID: "policy-uid"}},
			},
		}
	}
	tests := map[string]struct {
		change func(*planningtest.Cluster)
		want   []string
	}{
		"nothing is odd":        {func(*planningtest.Cluster) {}, []string{notDegraded, some}},
		"an open breaker":       {func(c *planningtest.Cluster) { c.Further = append(c.Further, ledgerWith(v1alpha1.BreakerOpen)) }, []string{"Degraded=True BreakerOpen", some}},
		"a breaker that probes": {func(c *planningtest.Cluster) { c.Further = append(c.Further, ledgerWith(v1alpha1.BreakerHalfOpen)) }, []string{"Degraded=True BreakerHalfOpen", some}},
		"a closed breaker":      {func(c *planningtest.Cluster) { c.Further = append(c.Further, ledgerWith(v1alpha1.BreakerClosed)) }, []string{notDegraded, some}},
		"a mass drift": {func(c *planningtest.Cluster) {
			c.Guard.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift}}
		}, []string{"Degraded=True MassDrift", some}},
		"a selector of nothing": {func(c *planningtest.Cluster) {
			c.Policy.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		}, []string{notDegraded, "TargetsSelected=False NoObjects"}},
		"a selector of everything": {func(c *planningtest.Cluster) {
			c.Policy.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Exists"}}}
		}, []string{notDegraded, "TargetsSelected=True AllObjects"}},
		"an unknown zone": {func(c *planningtest.Cluster) {
			c.Policy.Spec.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "Mars/Olympus"}
		}, []string{"Degraded=Unknown InvalidSpec", "Stalled=True InvalidSchedule", "TargetsSelected=Unknown InvalidSpec"}},
		"a selector that is none": {func(c *planningtest.Cluster) {
			c.Policy.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, []string{"Degraded=Unknown InvalidSpec", "Stalled=True InvalidSelector", "TargetsSelected=Unknown InvalidSpec"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.change)
			b.look()
			var got []string
			for _, c := range b.status().Conditions {
				if c.Type != v1alpha1.ConditionReady {
					got = append(got, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
				}
				if c.Message == "" || c.ObservedGeneration != 2 {
					t.Errorf("%+v", c)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStatusThatSaysTheSameIsNotWritten(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeObserveOnly })
	b.look()
	var version string
	read := func() string {
		p := &v1alpha1.RemediationPolicy{}
		if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.Policy), p); err != nil {
			t.Fatal(err)
		}
		return p.ResourceVersion
	}
	version = read()
	b.clock.SetTime(epoch.Add(time.Minute))
	b.look()
	if again := read(); again != version {
		t.Errorf("written again: %s, then %s", version, again)
	}
}

func TestWhatItWaitsFor(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) {
		c.Policy.Spec.Schedule.MaintenanceWindow = &v1alpha1.MaintenanceWindow{Start: "02:00", End: "06:00", TimeZone: "UTC"}
		c.Policy.Spec.MinimumDriftAge = &metav1.Duration{Duration: 30 * time.Minute}
	})
	result := b.look()
	status := b.status()
	if !strings.Contains(status.WaitingFor, "1 BelowMinimumAge (it is 20m0s old") || !strings.Contains(status.WaitingFor, "02:00") || len(status.WaitingFor) > maxWaitingFor {
		t.Errorf("it waits for %q", status.WaitingFor)
	}
	if result.RequeueAfter != 10*time.Minute || status.NextEvaluationTime == nil || !status.NextEvaluationTime.Time.Equal(epoch.Add(10*time.Minute)) {
		t.Errorf("it looks again in %s, at %v", result.RequeueAfter, status.NextEvaluationTime)
	}
}

func TestHealthIsLookedAtAgain(t *testing.T) {
	b := newBench(t, func(c *planningtest.Cluster) {
		c.Objects["db"].Status, c.Objects["cache"].Status = appsv1.DeploymentStatus{}, appsv1.DeploymentStatus{}
	})
	if result := b.look(); result.RequeueAfter != healthAgain || len(b.plans()) != 0 {
		t.Errorf("it looks again in %s, and made %d plans", result.RequeueAfter, len(b.plans()))
	}
}

func TestAPolicyThatIsGoneIsForgotten(t *testing.T) {
	b := newBench(t)
	b.look()
	if err := b.client.Delete(b.Context(), b.Policy); err != nil {
		t.Fatal(err)
	}
	b.look()
	if n, err := testutil.GatherAndCount(b.registry); err != nil || n != 0 {
		t.Errorf("%d figures are left (%v)", n, err)
	}
}

func TestWhatIsTooEarlyIsAskedAgain(t *testing.T) {
	b := newBench(t)
	b.r.Source = notReady{b.r.Source}
	if result := b.look(); result.RequeueAfter != notReadyAgain {
		t.Errorf("it looks again in %s", result.RequeueAfter)
	}
}

func TestAPolicyAlwaysHasItsConditions(t *testing.T) {
	for name, change := range map[string]func(*planningtest.Cluster){
		"in force":                  func(*planningtest.Cluster) {},
		"halted":                    func(c *planningtest.Cluster) { c.Policy.Spec.Mode = v1alpha1.PolicyModeHalted },
		"of no known mode":          func(c *planningtest.Cluster) { c.Policy.Spec.Mode = "Later" },
		"of an unknown Environment": func(c *planningtest.Cluster) { c.Policy.Spec.EnvironmentName = "nowhere" },
		"with a selector that is none": func(c *planningtest.Cluster) {
			c.Policy.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, change)
			b.look()
			conditions.CheckAlways(t, b.status().Conditions, 2, v1alpha1.ConditionReady, v1alpha1.ConditionDegraded, ConditionTargetsSelected)
		})
	}
}
