// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	arv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// matchConditions are read from the reference page, so that page and tests
// cannot differ.
func matchConditions() ([]arv1.MatchCondition, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "admission.md"))
	if err != nil {
		return nil, err
	}
	_, rest, ok := strings.Cut(string(raw), "<!-- matchconditions: begin -->\n```yaml\n")
	block, _, ok2 := strings.Cut(rest, "```\n<!-- matchconditions: end -->")
	if !ok || !ok2 {
		return nil, fmt.Errorf("docs/reference/admission.md has no block of matchConditions")
	}
	var parsed struct {
		MatchConditions []arv1.MatchCondition `json:"matchConditions"`
	}
	if err := yaml.UnmarshalStrict([]byte(block), &parsed); err != nil {
		return nil, err
	}
	return parsed.MatchConditions, nil
}

func rules(operations []arv1.OperationType, group string, resources ...string) arv1.RuleWithOperations {
	scope := arv1.NamespacedScope
	return arv1.RuleWithOperations{
		Operations: operations,
		Rule:       arv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources, Scope: &scope},
	}
}

// createConfigurations registers the webhook as the chart does, but by URL and with more time.
func createConfigurations(ctx context.Context, port int) error {
	conditions, err := matchConditions()
	if err != nil {
		return err
	}
	var (
		ignore       = arv1.Ignore
		none         = arv1.SideEffectClassNone
		noneOnDryRun = arv1.SideEffectClassNoneOnDryRun
		ifNeeded     = arv1.IfNeededReinvocationPolicy
		equivalent   = arv1.Equivalent
		timeout      = int32(4) // below the webhook's bodyTimeout of 5 s, so that slow callers who took all places would show
		writes       = []arv1.OperationType{arv1.Create, arv1.Update}
		all          = []arv1.OperationType{arv1.Create, arv1.Update, arv1.Delete}
		namespaces   = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn,
			Values: []string{"kube-system", "kube-node-lease", "kube-public", ownNamespace},
		}}}
		workloads = []string{"deployments", "statefulsets", "daemonsets", "replicasets", "controllerrevisions"}
	)
	at := func(path string) arv1.WebhookClientConfig {
		url := fmt.Sprintf("https://127.0.0.1:%d%s", port, path)
		return arv1.WebhookClientConfig{URL: &url}
	}
	if err := w.client.Create(ctx, &arv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "plumbline"},
		Webhooks: []arv1.MutatingWebhook{{
			Name: "spec-hash.plumbline.dev", ClientConfig: at("/mutate"), FailurePolicy: &ignore, SideEffects: &none, MatchPolicy: &equivalent,
			TimeoutSeconds: &timeout, ReinvocationPolicy: &ifNeeded, NamespaceSelector: namespaces, MatchConditions: conditions,
			AdmissionReviewVersions: []string{"v1"},
			Rules:                   []arv1.RuleWithOperations{rules(writes, "apps", workloads...), rules(writes, "batch", "jobs"), rules(writes, "", "configmaps", "pods")},
		}},
	}); err != nil {
		return err
	}
	return w.client.Create(ctx, &arv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "plumbline"},
		Webhooks: []arv1.ValidatingWebhook{{
			Name: "verdict.plumbline.dev", ClientConfig: at("/validate"), FailurePolicy: &ignore, SideEffects: &noneOnDryRun, MatchPolicy: &equivalent,
			TimeoutSeconds: &timeout, NamespaceSelector: namespaces, MatchConditions: conditions,
			AdmissionReviewVersions: []string{"v1"},
			Rules: []arv1.RuleWithOperations{
				rules(all, "apps", append(workloads, "deployments/scale", "statefulsets/scale", "replicasets/scale")...),
				rules(all, "batch", "jobs"), rules(all, "", "configmaps", "pods"),
				rules([]arv1.OperationType{arv1.Update}, "", "pods/ephemeralcontainers", "pods/resize"),
			},
		}},
	})
}
