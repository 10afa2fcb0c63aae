// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestEffectsOnRealPods measures repairs on pods, with a Prometheus that scrapes them and sends alerts to an
// Alertmanager. Windows are of minutes, because a median needs five points.
func TestEffectsOnRealPods(t *testing.T) {
	if os.Getenv("PLUMBLINE_EFFECTS") != "long" {
		t.Skip("it changes what the installation asks; make effectiveness-long has it")
	}
	if err := cluster.Apply(t.Context(), platformManifest); err != nil {
		t.Fatal(err)
	}
	startMonitoring(t)
	t.Run("repairs", func(t *testing.T) {
		for name, tell := range map[string]func(*testing.T){
			"a repair that works is effective":              repairWorks,
			"the same run without the repair is not":        repairWithheld,
			"repairs that do not help are left to a person": repairsDoNotHelp,
			"a repair that is overwritten is invalidated":   repairOverwritten,
			"an autoscaler in the window is no drift":       autoscalerInTheWindow,
			"a pod that runs out of memory after the write": outOfMemory,
		} {
			t.Run(name, tell)
		}
	})
	t.Run("without Prometheus", func(t *testing.T) { t.Run("a part is assessed", prometheusAway) })
}

// The windows of the stories. A rate looks back for a minute, and a median needs five points after it.
const (
	measured     = "safety: {cooldown: 30s, maxPerHour: 20}\n  health: {stabilization: 1s, timeout: 2m}\n  effectiveness: {stabilization: 30s, validity: 5m}"
	withMetrics  = "safety: {cooldown: 30s, maxPerHour: 20}\n  health: {stabilization: 1s, timeout: 20s}\n  effectiveness: {stabilization: 30s, validity: VALIDITY, metrics: {queries: [{name: up, query: 'avg_over_time(up{namespace=\"$(namespace)\"}[$(range)])', objective: HigherIsBetter, floor: \"0.1\"}]}}"
	crashes      = "SHOP_FAULTS=crash=2s"
	driftsForAsk = 150 * time.Second
)

// asks has a policy ask for a metric for so long.
func asks(validity string) string { return strings.Replace(withMetrics, "VALIDITY", validity, 1) }

// served is a workload whose pods go before new ones come, so that a bad version is an outage.
func served(name string) string {
	return workload(name, "  selector:", "  strategy: {type: Recreate}\n  selector:")
}

// crashing is a world in which a service that was up for a while crashes by a drift, and an alert fires.
func crashing(t *testing.T, name string) *world {
	t.Helper()
	w := newWorld(t, name)
	w.deployAll(0, served("web"))
	w.must(cluster.Apply(t.Context(), webService, "-n", w.namespace))
	w.ready("web")
	w.untilSeries(`count_over_time((up{namespace="NS"} == 1)[10m:5s])`, 20)
	w.as("alice", "set", "env", "deployment/web", crashes)
	w.awaitFinding("[name=SHOP_FAULTS]", "alice")
	w.eventuallyWithin(effectPatience, "an alert fires, and the drift has points", func(ctx context.Context) (bool, string) {
		alert, err := alertOf(ctx, "ServiceDown", w.namespace)
		if err != nil || alert == nil {
			return false, fmt.Sprintf("no alert: %v", err)
		}
		b, err := w.baseline(ctx)
		if err != nil || b.Status.FirstSeenTime == nil {
			return false, fmt.Sprintf("no drift: %v", err)
		}
		age := time.Since(b.Status.FirstSeenTime.Time)
		return age > driftsForAsk, fmt.Sprintf("the drift is %s old", age)
	})
	return w
}

// untilSeries waits until a query has at least so much.
func (w *world) untilSeries(promQL string, least float64) {
	w.Helper()
	promQL = strings.ReplaceAll(promQL, "NS", w.namespace)
	w.eventuallyWithin(effectPatience, promQL, func(ctx context.Context) (bool, string) {
		got, err := value(ctx, promQL)
		return err == nil && got >= least, fmt.Sprintf("%v, %v", got, err)
	})
}

func repairWorks(t *testing.T) {
	w := crashing(t, "effect-works")
	w.policy("action: Reconcile", asks("5m"))
	a := w.assessment(1, "it ends", hasEnded)
	if a.Status.Verdict != v1alpha1.VerdictEffective || a.Status.Reason != v1alpha1.AssessedFull || scoreOf(a) < 9_000 {
		t.Errorf("a repair that works is %s", describeEnd(a))
	}
	w.eventually("the plan has the verdict", func(ctx context.Context) (bool, string) {
		plans, err := w.plans(ctx)
		return err == nil && plans[0].Status.Effect == v1alpha1.VerdictEffective, fmt.Sprint(err)
	})
}

// repairWithheld restarts the pods, and leaves the drift where it is.
func repairWithheld(t *testing.T) {
	w := crashing(t, "effect-withheld")
	w.policy("action: Restart", asks("5m"))
	a := w.assessment(1, "it ends", hasEnded)
	if a.Status.Verdict != v1alpha1.VerdictIneffective || scoreOf(a) < 0 || scoreOf(a) > 3_000 {
		t.Errorf("a run without the repair is %s", describeEnd(a))
	}
}

// repairsDoNotHelp has an alert of another cause fire after each of five repairs.
func repairsDoNotHelp(t *testing.T) {
	w := newWorld(t, "effect-useless")
	w.deployAll(0, workload("web"))
	w.ready("web")
	w.policy("action: Reconcile", measured)
	const chain = 5
	for n := 1; n <= chain; n++ {
		w.as("alice", "set", "env", "deployment/web", fmt.Sprintf("DEBUG_%d=1", n)) // at one place it would be a fight
		w.assessment(n, "it begins", stabilizes)
		w.fire("QueueBacklog")
		a := w.assessment(n, "it ends", hasEnded)
		if a.Status.Verdict != v1alpha1.VerdictIneffective {
			t.Fatalf("repair %d is %s", n, describeEnd(a))
		}
	}
	w.as("alice", "set", "env", "deployment/web", "DEBUG_6=1")
	w.untilPolicy("a person has to look", func(p *v1alpha1.RemediationPolicyStatus) bool {
		return p.Targets.Drifted == 1 && p.Targets.Eligible == 0 && strings.Contains(p.WaitingFor, "IneffectiveChain")
	})
	if out := w.kubectl("plumbline", "policy", "explain", w.namespace, "deployment/web"); !strings.Contains(out, "a chain of 5 repairs") {
		t.Errorf("the explanation has no chain:\n%s", out)
	}
	if plans, err := w.plans(t.Context()); err != nil || len(plans) != chain {
		t.Errorf("%d plans, %v", len(plans), err)
	}
}

func repairOverwritten(t *testing.T) {
	w := newWorld(t, "effect-overwritten")
	w.deployAll(0, workload("web"))
	w.ready("web")
	w.drifted("web")
	w.policy("action: Reconcile", measured)
	w.assessment(1, "it begins", stabilizes)
	w.as("bob", "set", "env", "deployment/web", "DEBUG=1")
	first := w.assessment(1, "it ends", hasEnded)
	if first.Status.Reason != v1alpha1.AssessedSpecDrift || first.Status.Verdict != v1alpha1.VerdictInvalidated || scoreOf(first) != 0 ||
		component(first, v1alpha1.ComponentAlerts).State == v1alpha1.ComponentAssessed {
		t.Errorf("a repair that was overwritten is %s", describeEnd(first))
	}
	if second := w.assessment(2, "it ends", hasEnded); second.Status.Verdict != v1alpha1.VerdictEffective {
		t.Errorf("the repair after it is %s", describeEnd(second))
	}
}

func autoscalerInTheWindow(t *testing.T) {
	w := newWorld(t, "effect-scaled")
	w.deployAll(0, workload("web"))
	w.ready("web")
	w.drifted("web")
	w.policy("action: Reconcile", measured)
	w.assessment(1, "it begins", stabilizes)
	w.as(autoscaler, "scale", "deployment/web", "--replicas=3")
	a := w.assessment(1, "it ends", hasEnded)
	if health := component(a, v1alpha1.ComponentHealth).Health; a.Status.Verdict != v1alpha1.VerdictEffective || health == nil || health.Desired != 3 {
		t.Errorf("a repair beside an autoscaler is %s", describeEnd(a))
	}
}

// outOfMemory has a version that takes more memory than its limit, ten seconds after each start.
func outOfMemory(t *testing.T) {
	w := newWorld(t, "effect-memory")
	w.deployAll(0, workload("web",
		"requests: {cpu: 10m, memory: 16Mi}", "requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}",
		"env: [{name: SHOP_NAME, value: web}]", "env: [{name: SHOP_NAME, value: web}, {name: SHOP_FAULTS, value: hoards=10s}]"))
	w.as("alice", "set", "env", "deployment/web", "DEBUG=1")
	w.awaitFinding("[name=DEBUG]", "alice")
	w.policy("action: Reconcile", measured)
	a := w.assessment(1, "it ends", hasEnded)
	if health := component(a, v1alpha1.ComponentHealth).Health; a.Status.Verdict == v1alpha1.VerdictEffective || health == nil || health.OutOfMemory == 0 {
		t.Errorf("a repair whose pod runs out of memory is %s, measured %+v", describeEnd(a), health)
	}
}

// prometheusAway has no series, and no proof that alerts arrive: the watchdog is stale.
func prometheusAway(t *testing.T) {
	w := newWorld(t, "effect-partial")
	w.deployAll(0, workload("web"))
	w.ready("web")
	_, err := cluster.Kubectl(t.Context(), "scale", "deployment/prometheus", "-n", monitoringNamespace, "--replicas=0")
	w.must(err)
	w.eventuallyWithin(effectPatience, "the watchdog is stale", func(ctx context.Context) (bool, string) {
		dog, err := alertOf(ctx, "Watchdog", "")
		if err != nil {
			return false, err.Error()
		}
		return dog == nil || time.Since(dog.UpdatedAt) > 150*time.Second, fmt.Sprintf("%+v", dog)
	})
	w.drifted("web")
	w.policy("action: Reconcile", asks("90s"))
	a := w.assessment(1, "it ends", hasEnded)
	if a.Status.Reason != v1alpha1.AssessedPartial || component(a, v1alpha1.ComponentHealth).State != v1alpha1.ComponentAssessed ||
		component(a, v1alpha1.ComponentAlerts).State != v1alpha1.ComponentNotAnswered || component(a, v1alpha1.ComponentMetrics).State != v1alpha1.ComponentNotAnswered {
		t.Errorf("an assessment without Prometheus is %s", describeEnd(a))
	}
}
