// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// registered lists what rules are for, as "operations group/version/resource".
func registered(rules []admissionv1.RuleWithOperations) []string {
	var lines []string
	for _, rule := range rules {
		var operations []string
		for _, operation := range rule.Operations {
			operations = append(operations, string(operation))
		}
		lines = append(lines, fmt.Sprintf("%s %s/%s/%s", strings.Join(operations, ","),
			strings.Join(rule.APIGroups, ","), strings.Join(rule.APIVersions, ","), strings.Join(rule.Resources, ",")))
	}
	return lines
}

func TestTheMutatingWebhook(t *testing.T) {
	config := convert[admissionv1.MutatingWebhookConfiguration](t, find(t, template(t), "MutatingWebhookConfiguration", "plumbline"))
	if len(config.Webhooks) != 1 {
		t.Fatalf("%d webhooks, want 1: their time-outs add up", len(config.Webhooks))
	}
	got := config.Webhooks[0]
	want := admissionv1.MutatingWebhook{
		Name: "spec-hash.plumbline.dev",
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
			Namespace: "plumbline-system", Name: "plumbline-webhook", Path: new("/mutate"), Port: new(int32(443))}},
		SideEffects: new(admissionv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1"},
		FailurePolicy: new(admissionv1.Ignore), MatchPolicy: new(admissionv1.Equivalent),
		ReinvocationPolicy: new(admissionv1.IfNeededReinvocationPolicy), TimeoutSeconds: new(int32(2)),
		NamespaceSelector: allBut("kube-system", "kube-node-lease", "kube-public", "plumbline-system"),
		MatchConditions:   documentedMatchConditions(t), Rules: got.Rules,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rules := []string{"CREATE,UPDATE apps/v1/deployments", "CREATE,UPDATE apps/v1/statefulsets", "CREATE,UPDATE apps/v1/daemonsets", "CREATE,UPDATE batch/v1/cronjobs"}
	if diff := cmp.Diff(rules, registered(got.Rules)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestTheValidatingWebhook(t *testing.T) {
	config := convert[admissionv1.ValidatingWebhookConfiguration](t, find(t, template(t), "ValidatingWebhookConfiguration", "plumbline"))
	if len(config.Webhooks) != 1 {
		t.Fatalf("%d webhooks, want 1", len(config.Webhooks))
	}
	got := config.Webhooks[0]
	want := admissionv1.ValidatingWebhook{
		Name: "verdict.plumbline.dev",
		ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
			Namespace: "plumbline-system", Name: "plumbline-webhook", Path: new("/validate"), Port: new(int32(443))}},
		SideEffects: new(admissionv1.SideEffectClassNoneOnDryRun), AdmissionReviewVersions: []string{"v1"},
		FailurePolicy: new(admissionv1.Ignore), MatchPolicy: new(admissionv1.Equivalent), TimeoutSeconds: new(int32(2)),
		NamespaceSelector: allBut("kube-system", "kube-node-lease", "kube-public", "plumbline-system"),
		MatchConditions:   documentedMatchConditions(t), Rules: got.Rules,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rules := []string{
		"CREATE,DELETE apps/v1/deployments", "CREATE,DELETE apps/v1/statefulsets", "CREATE,DELETE apps/v1/daemonsets", "CREATE,DELETE batch/v1/cronjobs",
		"UPDATE apps/v1/deployments/scale", "UPDATE apps/v1/statefulsets/scale", "UPDATE /v1/pods/ephemeralcontainers", "UPDATE /v1/pods/resize",
	}
	if diff := cmp.Diff(rules, registered(got.Rules)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func allBut(namespaces ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: namespaces}}}
}

// documentedMatchConditions reads the conditions that the webhook's own tests are
// made with: the fenced block of docs/reference/admission.md.
func documentedMatchConditions(t *testing.T) []admissionv1.MatchCondition {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(rendered.RepositoryDir(), "docs", "reference", "admission.md"))
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(page), "```") {
		body, isYAML := strings.CutPrefix(block, "yaml\n")
		if !isYAML || !strings.Contains(body, "matchConditions:") {
			continue
		}
		var parsed struct {
			MatchConditions []admissionv1.MatchCondition `json:"matchConditions"`
		}
		if err := yaml.Unmarshal([]byte(body), &parsed); err != nil {
			t.Fatalf("the matchConditions of the documentation: %v", err)
		}
		return parsed.MatchConditions
	}
	t.Fatal("docs/reference/admission.md shows no matchConditions")
	return nil
}

// Admission must never wait for what keeps the cluster, or Plumbline, alive.
func TestNothingThatTheClusterNeedsToStartIsRegistered(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		seen := 0
		for _, object := range objects {
			if object.GetName() == "plumbline-inject" {
				continue // of pods, those that ask; TestOnlyPodsThatAskAreSent
			}
			var rules []any
			var selectors []any
			switch object.GetKind() {
			case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
				for _, webhook := range nested(object.Object, "webhooks").([]any) {
					if nested(webhook.(map[string]any), "clientConfig", "caBundle") != nil {
						t.Errorf("%s sets caBundle; an upgrade would take it from the webhook", rendered.ID(object))
					}
					rules = append(rules, nested(webhook.(map[string]any), "rules").([]any)...)
					selectors = append(selectors, nested(webhook.(map[string]any), "namespaceSelector"))
				}
			case "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy":
				rules = nested(object.Object, "spec", "matchConstraints", "resourceRules").([]any)
				selectors = append(selectors, nested(object.Object, "spec", "matchConstraints", "namespaceSelector"))
			default:
				continue
			}
			seen++
			checkRules(t, rendered.ID(object), rules)
			ownKinds := onlyOwnKinds(rules)
			for _, selector := range selectors {
				text := fmt.Sprint(selector)
				if !ownKinds && (!strings.Contains(text, "kube-system") || !strings.Contains(text, "plumbline-system")) {
					t.Errorf("%s looks at excluded namespaces: %s", rendered.ID(object), text)
				}
			}
		}
		if seen < 5 {
			t.Errorf("only %d configurations and policies were looked at", seen)
		}
	})
}

// The chart writes the list down once more, because templates cannot call Go.
func TestTheChartExcludesTheNamespacesThatTheProcessesExclude(t *testing.T) {
	for own, args := range map[string][]string{
		"plumbline-system": nil,
		"elsewhere":        {"--namespace", "elsewhere"},
	} {
		for name, path := range valuesFiles(t) {
			t.Run(name+" in "+own, func(t *testing.T) {
				t.Parallel()
				want := allBut(specguard.ExcludedNamespaces(own)...).MatchExpressions
				selectors := namespaceSelectors(t, template(t, append([]string{"--values", path}, args...)...))
				for id, got := range selectors {
					// There may be more to it.
					if diff := cmp.Diff(want, got.MatchExpressions[:min(len(got.MatchExpressions), len(want))]); diff != "" {
						t.Errorf("%s (-want +got):\n%s", id, diff)
					}
				}
				if len(selectors) < 3 {
					t.Errorf("only %d selectors of namespaces were looked at", len(selectors))
				}
			})
		}
	}
}

// namespaceSelectors are those of webhooks and admission policies. Policies for
// Plumbline's own kinds have none: those kinds are looked at everywhere.
func namespaceSelectors(t *testing.T, objects []*unstructured.Unstructured) map[string]*metav1.LabelSelector {
	t.Helper()
	selectors := map[string]*metav1.LabelSelector{}
	add := func(id string, selector any) {
		if selector != nil {
			selectors[id] = convert[metav1.LabelSelector](t, &unstructured.Unstructured{Object: selector.(map[string]any)})
		}
	}
	for _, object := range objects {
		switch object.GetKind() {
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			for _, webhook := range nested(object.Object, "webhooks").([]any) {
				webhook := webhook.(map[string]any)
				add(fmt.Sprint(rendered.ID(object), " ", webhook["name"]), webhook["namespaceSelector"])
			}
		case "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy":
			add(rendered.ID(object), nested(object.Object, "spec", "matchConstraints", "namespaceSelector"))
		}
	}
	return selectors
}

func checkRules(t *testing.T, id string, rules []any) {
	t.Helper()
	if len(rules) == 0 {
		t.Errorf("%s has no rules", id)
	}
	for _, rule := range rules {
		for _, resource := range nested(rule.(map[string]any), "resources").([]any) {
			if slices.Contains([]string{"*", "*/*", "pods", "pods/*", "nodes", "leases", "namespaces", "secrets", "events", "certificatesigningrequests"}, resource.(string)) {
				t.Errorf("%s registers %s", id, resource)
			}
		}
		want := "Namespaced"
		if clusterScoped(nested(rule.(map[string]any), "resources").([]any)) {
			want = "Cluster"
		}
		if scope := nested(rule.(map[string]any), "scope"); scope != want {
			t.Errorf("%s: scope %v", id, scope)
		}
	}
}

// clusterScoped says whether the resources are those of ours outside namespaces:
// where the assessor asks whether the Deny policy is in force, and what only some
// of us may write.
func clusterScoped(resources []any) bool {
	return slices.ContainsFunc(resources, func(resource any) bool {
		return slices.Contains([]string{"clusterspecguards/status", "remediationpolicies", "remediationpolicies/status", "environments/status"}, resource.(string))
	})
}

// onlyOwnKinds says whether nothing but kinds of ours is looked at, which is done
// in every namespace.
func onlyOwnKinds(rules []any) bool {
	return !slices.ContainsFunc(rules, func(rule any) bool {
		return fmt.Sprint(nested(rule.(map[string]any), "apiGroups")) != "[plumbline.dev]"
	})
}

func nested(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

func TestWhoStampsTheWriter(t *testing.T) {
	served := template
	unserved := func(t *testing.T, args ...string) []*unstructured.Unstructured {
		t.Helper()
		return copies(render(t, false, args...).objects)
	}
	tests := map[string]struct {
		render  func(*testing.T, ...string) []*unstructured.Unstructured
		mode    string
		policy  bool
		webhook bool
	}{
		"the policy, where it is served":           {served, "Auto", true, false},
		"the webhook, where it is not":             {unserved, "Auto", false, true},
		"the policy, asked for":                    {unserved, "Policy", true, false},
		"the webhook, asked for although it could": {served, "Webhook", false, true},
		"both, during a switch":                    {served, "Both", true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects := test.render(t, "--set", "policies.writerStamp="+test.mode, "--set", "guard.stampedGroups={ops,devs}")
			if got := len(rendered.OfKind(objects, "MutatingAdmissionPolicy")) == 1 && len(rendered.OfKind(objects, "MutatingAdmissionPolicyBinding")) == 1; got != test.policy {
				t.Errorf("there is a policy: %v, want %v", got, test.policy)
			}
			assessor := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-assessor")).Spec.Template.Spec.Containers[0].Args
			if want := fmt.Sprintf("--stamp-writer=%v", test.webhook); !slices.Contains(assessor, want) {
				t.Errorf("the assessor is not told %s: %q", want, assessor)
			}
			if got, want := slices.Contains(assessor, "--stamp-policy=true"), test.policy && test.webhook; got != want {
				t.Errorf("the assessor is told that both stamp: %v, want %v", got, want)
			}
			args := convert[appsv1.Deployment](t, find(t, objects, "Deployment", "plumbline-webhook")).Spec.Template.Spec.Containers[0].Args
			if got := slices.Contains(args, "--stamp-writer=true"); got != test.webhook {
				t.Errorf("the webhook stamps: %v, want %v", got, test.webhook)
			}
			if got := slices.Contains(args, "--stamped-groups=devs,ops"); got != test.webhook {
				t.Errorf("the webhook knows the groups: %v, want %v", got, test.webhook)
			}
			verdict := convert[admissionv1.ValidatingWebhookConfiguration](t, find(t, objects, "ValidatingWebhookConfiguration", "plumbline")).Webhooks[0]
			if got := slices.Contains(verdict.Rules[0].Operations, admissionv1.Update); got != test.webhook {
				t.Errorf("an update costs a second call: %v, want %v", got, test.webhook)
			}
		})
	}
}

// The hooks of `helm test` must not outlive it, however it ends.
func TestTheInstallTestCleansUp(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		hooks := 0
		for _, object := range objects {
			if object.GetAnnotations()["helm.sh/hook"] != "test" {
				continue
			}
			hooks++
			if got := object.GetAnnotations()["helm.sh/hook-delete-policy"]; got != "before-hook-creation,hook-succeeded,hook-failed" {
				t.Errorf("%s: deletion policy %q", rendered.ID(object), got)
			}
		}
		if hooks != 5 {
			t.Errorf("%d hooks, want 5", hooks)
		}
	})
}
