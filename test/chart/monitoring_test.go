// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/selftest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// The kinds of the Prometheus Operator, as far as the chart uses them: its Go
// module would be a dependency for a handful of fields.
type (
	prometheusRule struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              ruleFile `json:"spec"`
	}
	ruleFile struct {
		Groups []ruleGroup `json:"groups"`
	}
	ruleGroup struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		Alert       string            `json:"alert"`
		Expr        string            `json:"expr"`
		For         string            `json:"for"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	serviceMonitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector          metav1.LabelSelector `json:"selector"`
			NamespaceSelector struct {
				MatchNames []string `json:"matchNames"`
			} `json:"namespaceSelector"`
			Endpoints []struct {
				Port     string `json:"port"`
				Path     string `json:"path"`
				Interval string `json:"interval"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	podMonitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector          metav1.LabelSelector `json:"selector"`
			NamespaceSelector struct {
				MatchNames []string `json:"matchNames"`
			} `json:"namespaceSelector"`
			PodMetricsEndpoints []struct {
				Port     string `json:"port"`
				Path     string `json:"path"`
				Interval string `json:"interval"`
			} `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
)

func TestThePrometheusRuleIsTheRulesFile(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "files", "alerts", "plumbline.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want ruleFile
	if err := yaml.UnmarshalStrict(body, &want); err != nil {
		t.Fatal(err)
	}
	args := []string{"--set", "monitoring.prometheusRule.enabled=true", "--set", "monitoring.prometheusRule.labels.release=prom"}
	with := convert[prometheusRule](t, find(t, template(t, append(args, "--set", "mesh.enabled=true", "--set", withAPI)...), "PrometheusRule", "plumbline"))
	if diff := cmp.Diff(want, with.Spec); diff != "" {
		t.Errorf("(-file +chart):\n%s", diff)
	}
	n := len(want.Groups)
	want.Groups = slices.DeleteFunc(want.Groups, func(g ruleGroup) bool { return g.Name == "plumbline.mesh" || g.Name == "plumbline.api" })
	got := convert[prometheusRule](t, find(t, template(t, args...), "PrometheusRule", "plumbline"))
	if diff := cmp.Diff(want, got.Spec); diff != "" || len(want.Groups) != n-2 {
		t.Errorf("without a mesh and an API, of %d groups (-file +chart):\n%s", n, diff)
	}
	if got.Labels["release"] != "prom" {
		t.Errorf("labels %v", got.Labels)
	}
}

func TestTheDashboardIsTheFile(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "files", "dashboards", "plumbline.json"))
	if err != nil {
		t.Fatal(err)
	}
	got := convert[corev1.ConfigMap](t, find(t, template(t, "--set", "monitoring.dashboard.enabled=true"), "ConfigMap", "plumbline-dashboard"))
	if got.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the sidecar looks for grafana_dashboard=1: %v", got.Labels)
	}
	var a, b any
	if err := json.Unmarshal(want, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got.Data["plumbline.json"]), &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-file +chart):\n%s", diff)
	}
}

func TestTheDashboardLinksToTheConsole(t *testing.T) {
	dashboard := func(set ...string) (d map[string]any) {
		t.Helper()
		raw := convert[corev1.ConfigMap](t, find(t, template(t, append([]string{"--set", "monitoring.dashboard.enabled=true"}, set...)...), "ConfigMap", "plumbline-dashboard")).Data["plumbline.json"]
		if err := json.Unmarshal([]byte(raw), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	linked := dashboard("--set", "monitoring.dashboard.consoleURL=https://plumbline.example.com")
	var got []string
	for _, link := range linked["links"].([]any) { //nolint:forcetypeassert // a list, or the test fails
		of := link.(map[string]any) //nolint:forcetypeassert // the same
		got = append(got, fmt.Sprint(of["title"], " ", of["url"], " ", of["type"]))
	}
	want := []string{
		"Drift https://plumbline.example.com/drift link", "Fleet https://plumbline.example.com/ link",
		"Plans https://plumbline.example.com/plans link", "Releases https://plumbline.example.com/releases link",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	delete(linked, "links")
	if diff := cmp.Diff(dashboard(), linked); diff != "" {
		t.Errorf("the rest (-without +with):\n%s", diff)
	}
}

func TestThePodMonitorSelectsExactlyThePodsWithMetrics(t *testing.T) {
	objects := template(t, "--set", "monitoring.podMonitor.enabled=true", "--set", "selftest.enabled=true")
	monitor := convert[podMonitor](t, find(t, objects, "PodMonitor", "plumbline"))
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	selected := 0
	for _, object := range rendered.OfKind(objects, "Deployment") {
		d := convert[appsv1.Deployment](t, object)
		port := monitor.Spec.PodMetricsEndpoints[0].Port
		serves := slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
		matches := slices.Contains(monitor.Spec.NamespaceSelector.MatchNames, d.Namespace) && selector.Matches(labelSet(d.Spec.Template.Labels))
		if serves != matches {
			t.Errorf("%s: has metrics: %t, is scraped: %t", d.Name, serves, matches)
		}
		if matches {
			selected++
		}
	}
	if selected != 3 {
		t.Errorf("%d Deployments are scraped, want 3", selected)
	}
}

type labelSet map[string]string

func (s labelSet) Has(key string) bool            { _, ok := s[key]; return ok }
func (s labelSet) Get(key string) string          { return s[key] }
func (s labelSet) Lookup(k string) (string, bool) { v, ok := s[k]; return v, ok }

func TestNothingIsMonitoredUnlessAskedFor(t *testing.T) {
	for _, object := range template(t) {
		if strings.Contains(object.GetName(), "selftest") || slices.Contains([]string{"PodMonitor", "ServiceMonitor", "PrometheusRule", "ConfigMap", "Namespace"}, object.GetKind()) {
			t.Errorf("%s is there by default", rendered.ID(object))
		}
	}
}

// A self-test where admission does not look would prove the watch alone.
func TestTheSelftestLivesWhereAdmissionLooks(t *testing.T) {
	for _, namespace := range []string{"kube-system", "kube-node-lease", "kube-public", rendered.Namespace} {
		if _, err := helm.Template(t.Context(), "--set", "selftest.enabled=true", "--set", "selftest.namespace="+namespace); err == nil {
			t.Errorf("the self-test may live in %s", namespace)
		}
	}
	objects := template(t, "--set", "selftest.enabled=true")
	object := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-selftest-object"))
	guard := convert[v1alpha1.SpecGuard](t, find(t, objects, "SpecGuard", "plumbline-selftest"))
	find(t, objects, "Namespace", object.Namespace)
	if object.Namespace == rendered.Namespace || guard.Namespace != object.Namespace {
		t.Errorf("the object is in %s, its guard in %s", object.Namespace, guard.Namespace)
	}
	if *object.Spec.Replicas != 0 || object.Spec.MinReadySeconds != 0 || object.Spec.ProgressDeadlineSeconds != nil || object.Spec.RevisionHistoryLimit != nil {
		t.Errorf("the object runs something, or sets what the self-test moves: %+v", object.Spec)
	}
	if len(guard.Spec.TrustedWriters.ServiceAccounts) != 0 {
		t.Errorf("the self-test's guard trusts somebody: %v", guard.Spec.TrustedWriters)
	}
}

// Its kind is made by this very release, so the guard is a hook; and what Helm
// leaves behind of hooks has to go before the release does.
func TestTheSelftestsGuardComesAfterItsKindAndGoesWithTheRelease(t *testing.T) {
	got := map[string]string{}
	for _, object := range rendered.OfKind(template(t, "--set", "selftest.enabled=true"), "SpecGuard") {
		if object.GetName() == "plumbline-selftest" {
			got[object.GetAnnotations()["helm.sh/hook"]] = object.GetAnnotations()["helm.sh/hook-delete-policy"]
		}
	}
	want := map[string]string{"post-install,post-upgrade": "before-hook-creation", "pre-delete": "before-hook-creation,hook-succeeded"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks and when they are deleted (-want +got):\n%s", diff)
	}
}

func TestTheSelftestMayWriteItsObjectAndNothingElse(t *testing.T) {
	var got []string
	for _, right := range rights(t, template(t, "--set", "selftest.enabled=true")) {
		if strings.HasPrefix(right, "plumbline-selftest:") {
			got = append(got, right)
		}
	}
	want := []string{
		"plumbline-selftest: get baselines.plumbline.dev named deployments.apps.plumbline-selftest-object, in plumbline-system-selftest",
		"plumbline-selftest: get,patch deployments.apps named plumbline-selftest-object, in plumbline-system-selftest",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheSelftestsArgumentsAreThoseOfTheValues(t *testing.T) {
	for name, values := range map[string][]string{
		"by default": nil,
		"set":        {"--set", "selftest.period=10m", "--set", "selftest.deadline=30s", "--set", "selftest.namespace=birds"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := template(t, append(values, "--set", "selftest.enabled=true")...)
			d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-selftest"))
			want := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-selftest-object"))
			args := d.Spec.Template.Spec.Containers[0].Args
			if args[0] != "--role="+selftest.Role || !slices.Contains(args, "--selftest-namespace="+want.Namespace) || !slices.Contains(args, "--selftest-name="+want.Name) {
				t.Errorf("arguments %q for the object %s/%s", args, want.Namespace, want.Name)
			}
			if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
				t.Error("two selftests may run at once")
			}
		})
	}
}

func TestTheSelftestsNetworkPoliciesOpenNothing(t *testing.T) {
	objects := template(t, "--set", "selftest.enabled=true")
	object := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-selftest-object"))
	if len(object.Spec.Ingress)+len(object.Spec.Egress) != 0 || len(object.Spec.PolicyTypes) != 2 {
		t.Errorf("the object may talk: %+v", object.Spec)
	}
	runner := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-selftest"))
	assessor := convert[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "plumbline-assessor"))
	if diff := cmp.Diff(assessor.Spec.Egress[:2], runner.Spec.Egress); diff != "" {
		t.Errorf("egress differs from the assessor's to the API server and DNS (-assessor +selftest):\n%s", diff)
	}
}
