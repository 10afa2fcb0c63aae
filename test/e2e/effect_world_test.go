// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	monitoringNamespace = "e2e-monitoring"
	// effectPatience bounds an assessment, and the time before it in which series get their points.
	effectPatience = 8 * time.Minute
)

// monitoringManifest runs a Prometheus that asks the services of stories each five seconds, and an
// Alertmanager. TARGETS are those services.
const monitoringManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: e2e-monitoring}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: monitoring, namespace: e2e-monitoring}
data:
  prometheus.yml: |
    global: {scrape_interval: 5s, evaluation_interval: 5s}
    rule_files: [/etc/monitoring/rules.yml]
    alerting: {alertmanagers: [{static_configs: [{targets: ["alertmanager:9093"]}]}]}
    scrape_configs:
    - job_name: shop
      scrape_timeout: 2s
      static_configs: [TARGETS]
  rules.yml: |
    groups:
    - name: shop
      rules:
      - {alert: Watchdog, expr: vector(1)}
      - alert: ServiceDown
        expr: avg_over_time(up{job="shop"}[30s]) < 0.9
  alertmanager.yml: |
    route: {receiver: none}
    receivers: [{name: none}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus, namespace: e2e-monitoring}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: prometheus}}
  template:
    metadata: {labels: {app: prometheus}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: docker.io/plumbline/prometheus:dev
        args: [--config.file=/etc/monitoring/prometheus.yml, --storage.tsdb.path=/data]
        readinessProbe: {httpGet: {path: /-/ready, port: 9090}, periodSeconds: 1}
        volumeMounts: [{name: monitoring, mountPath: /etc/monitoring}, {name: data, mountPath: /data}]
      volumes: [{name: monitoring, configMap: {name: monitoring}}, {name: data, emptyDir: {}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: alertmanager, namespace: e2e-monitoring}
spec:
  replicas: 1
  selector: {matchLabels: {app: alertmanager}}
  template:
    metadata: {labels: {app: alertmanager}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: docker.io/plumbline/alertmanager:dev
        args: [--config.file=/etc/monitoring/alertmanager.yml, --storage.path=/data, --cluster.listen-address=]
        readinessProbe: {httpGet: {path: /-/ready, port: 9093}, periodSeconds: 1}
        volumeMounts: [{name: monitoring, mountPath: /etc/monitoring}, {name: data, mountPath: /data}]
      volumes: [{name: monitoring, configMap: {name: monitoring}}, {name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: prometheus, namespace: e2e-monitoring}
spec: {selector: {app: prometheus}, ports: [{port: 9090}]}
---
apiVersion: v1
kind: Service
metadata: {name: alertmanager, namespace: e2e-monitoring}
spec: {selector: {app: alertmanager}, ports: [{port: 9093}]}
`

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 8080}]}
`

// monitored are the namespaces of stories that have metrics. An alert fires for each until its service answers.
var monitored = []string{"e2e-effect-works", "e2e-effect-withheld"}

// startMonitoring runs both sources, and has the installation ask them.
func startMonitoring(t *testing.T) {
	t.Helper()
	for _, name := range []string{"prometheus", "alertmanager"} {
		binary, err := exec.CommandContext(t.Context(), "bin/cluster", "which", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(t.TempDir(), name+".tar")
		for _, args := range [][]string{
			{"image", "build", "--name", name, "--binary", strings.TrimSpace(string(binary)), "--tag", "docker.io/plumbline/" + name + ":dev", "--out", archive},
			{"load", "--name", clusterName, archive},
		} {
			if err := harness.Call(t.Context(), "bin/cluster", args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	var targets []string
	for _, namespace := range monitored {
		targets = append(targets, fmt.Sprintf(`{targets: ["web.%s:8080"], labels: {namespace: %s, deployment: web}}`, namespace, namespace))
	}
	if err := cluster.Apply(t.Context(), strings.Replace(monitoringManifest, "TARGETS", strings.Join(targets, ", "), 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		removeNamespace(t, monitoringNamespace, []string{"get", "pods,events", "-n", monitoringNamespace, "-o", "wide"})
	})
	for _, name := range []string{"prometheus", "alertmanager"} {
		if _, err := cluster.Kubectl(t.Context(), "rollout", "status", "deployment/"+name, "-n", monitoringNamespace, "--timeout=120s"); err != nil {
			t.Fatal(err)
		}
	}
	upgrade(t, "metrics.prometheus.url=http://prometheus."+monitoringNamespace+":9090", "metrics.alertmanager.url=http://alertmanager."+monitoringNamespace+":9093")
}

// monitoringPath is that of a request to a source, through the API server.
func monitoringPath(service, path string) string {
	return "/api/v1/namespaces/" + monitoringNamespace + "/services/" + service + "/proxy" + path
}

// value is what Prometheus has for a query now; -1 without a sample.
func value(ctx context.Context, promQL string) (float64, error) {
	out, err := cluster.Kubectl(ctx, "get", "--raw", monitoringPath("prometheus:9090", "/api/v1/query?query="+url.QueryEscape(promQL)))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]json.Number `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return 0, fmt.Errorf("reading %s: %w", out, err)
	}
	if len(answer.Data.Result) != 1 {
		return -1, nil
	}
	return answer.Data.Result[0].Value[1].Float64()
}

// firing is an alert as Alertmanager has it.
type firing struct {
	Labels    map[string]string `json:"labels"`
	UpdatedAt time.Time         `json:"updatedAt"`
}

// alertOf finds an alert by its name and namespace; nil if it does not fire.
func alertOf(ctx context.Context, name, namespace string) (*firing, error) {
	out, err := cluster.Kubectl(ctx, "get", "--raw", monitoringPath("alertmanager:9093", "/api/v2/alerts"))
	if err != nil {
		return nil, err
	}
	var all []firing
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", out, err)
	}
	for i := range all {
		if all[i].Labels["alertname"] == name && all[i].Labels["namespace"] == namespace {
			return &all[i], nil
		}
	}
	return nil, nil //nolint:nilnil // absent is an answer
}

// fire has an alert about the workload begin now, as a sender of its own would.
func (w *world) fire(name string) {
	w.Helper()
	labels := map[string]string{"alertname": name, "namespace": w.namespace, "deployment": "web"}
	for _, times := range [][2]time.Time{ // what fired before has ended
		{time.Now().Add(-time.Hour), time.Now().Add(-time.Second)}, {time.Now(), time.Now().Add(2 * time.Hour)},
	} {
		body, err := json.Marshal([]any{map[string]any{"labels": labels, "startsAt": times[0], "endsAt": times[1]}})
		w.must(err)
		w.must(cluster.PostRaw(w.Context(), monitoringPath("alertmanager:9093", "/api/v2/alerts"), body))
	}
}

// eventuallyWithin is eventually for what takes longer than pods do.
func (w *world) eventuallyWithin(limit time.Duration, what string, check func(context.Context) (bool, string)) {
	w.Helper()
	w.must(harness.Eventually(w.Context(), what, limit, check))
}

// assessment waits until that of the first step of the n-th plan, from 1, is as wanted.
func (w *world) assessment(n int, what string, holds func(*v1alpha1.EffectivenessAssessment) bool) *v1alpha1.EffectivenessAssessment {
	w.Helper()
	found := &v1alpha1.EffectivenessAssessment{}
	w.eventuallyWithin(effectPatience, fmt.Sprintf("assessment %d: %s", n, what), func(ctx context.Context) (bool, string) {
		plans, err := w.plans(ctx)
		if err != nil {
			return false, err.Error()
		}
		if len(plans) < n {
			return false, fmt.Sprintf("there are %d plans", len(plans))
		}
		if err := cluster.Read(ctx, found, w.namespace, effect.NameOf(plans[n-1].Name, 0)); err != nil {
			return false, err.Error()
		}
		return holds(found), describeEnd(found)
	})
	w.Logf("assessment %d: %s", n, describeEnd(found))
	return found
}

func hasEnded(a *v1alpha1.EffectivenessAssessment) bool { return effect.Phase(a.Status.Phase).Ended() }

func stabilizes(a *v1alpha1.EffectivenessAssessment) bool {
	return a.Status.Phase == v1alpha1.AssessmentStabilizing && a.Status.Integrity == v1alpha1.IntegrityUnchanged
}

// describeEnd is an assessment in one line.
func describeEnd(a *v1alpha1.EffectivenessAssessment) string {
	s := &a.Status
	words := fmt.Sprintf("%s %s %s, score %d, %s", s.Phase, s.Reason, s.Verdict, scoreOf(a), s.Message)
	for i := range s.Components {
		c := &s.Components[i]
		words += fmt.Sprintf("; %s %s: %s", c.Name, c.State, c.Message)
	}
	return words
}

// scoreOf an assessment, -1 for none.
func scoreOf(a *v1alpha1.EffectivenessAssessment) int32 {
	if a.Status.Score == nil {
		return -1
	}
	return *a.Status.Score
}

// component of an assessment.
func component(a *v1alpha1.EffectivenessAssessment, name v1alpha1.EffectComponent) v1alpha1.AssessedComponent {
	for _, c := range a.Status.Components {
		if c.Name == name {
			return c
		}
	}
	return v1alpha1.AssessedComponent{}
}
