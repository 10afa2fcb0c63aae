// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
)

// server answers reads of the admissionregistration group by kind: with an
// object, or with an error.
type server map[string]any

func (s server) get(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, ok := into.(*unstructured.Unstructured)
	if !ok {
		return errors.New("not asked for as unstructured")
	}
	switch answer := s[object.GetKind()].(type) {
	case nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: object.GetKind()}, "x")
	case error:
		return answer
	default:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
		object.Object = content
		return err
	}
}

func TestInstallation_IsReadFromWhatTheChartInstalled(t *testing.T) {
	const policyKind, bindingKind, webhookKind = "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration"
	excludes := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "ours"}},
	}}
	rule := admissionv1.RuleWithOperations{Rule: admissionv1.Rule{APIGroups: []string{"apps"}, Resources: []string{"deployments", "gizmos"}}}
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: writerPolicy, CreationTimestamp: clitest.Before(2 * time.Hour)},
		Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: excludes, ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
		}},
	}
	binding := func(policyName string, age time.Duration) *admissionv1.MutatingAdmissionPolicyBinding {
		return &admissionv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: writerPolicy, CreationTimestamp: clitest.Before(age)},
			Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policyName},
		}
	}
	webhooks := &admissionv1.MutatingWebhookConfiguration{Webhooks: []admissionv1.MutatingWebhook{{
		NamespaceSelector: excludes, Rules: []admissionv1.RuleWithOperations{rule},
	}}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "x", errors.New("no"))
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: policyKind}}
	deployments := map[adopt.GroupKind]bool{{Group: "apps", Kind: "Deployment"}: true}
	ours := []string{"kube-system", "ours"}
	usual := []string{"kube-system", "kube-node-lease", "kube-public", "plumbline-system"}
	cases := map[string]struct {
		server  server
		want    adopt.Installation
		missing []string
	}{
		"stamps count from when policy and binding are there": {
			server{policyKind: policy, bindingKind: binding(writerPolicy, time.Hour)},
			adopt.Installation{Excluded: ours, Registered: deployments, StampedSince: clitest.Before(time.Hour).Time}, nil,
		},
		"a binding older than its policy does not make stamps older": {
			server{policyKind: policy, bindingKind: binding(writerPolicy, 9*time.Hour)},
			adopt.Installation{Excluded: ours, Registered: deployments, StampedSince: clitest.Before(2 * time.Hour).Time}, nil,
		},
		"without a binding the policy does nothing": {
			server{policyKind: policy}, adopt.Installation{Excluded: ours, Registered: deployments}, []string{"mutatingadmissionpolicybinding plumbline-writer"},
		},
		"a binding of another policy is none": {
			server{policyKind: policy, bindingKind: binding("other", time.Hour)},
			adopt.Installation{Excluded: ours, Registered: deployments}, []string{"mutatingadmissionpolicybinding plumbline-writer"},
		},
		"a binding that may not be read proves nothing": {
			server{policyKind: policy, bindingKind: forbidden},
			adopt.Installation{Excluded: ours, Registered: deployments}, []string{"mutatingadmissionpolicybinding plumbline-writer"},
		},
		"where the webhook stamps, no stamp is proof": {
			server{policyKind: noKind, webhookKind: webhooks}, adopt.Installation{Excluded: ours, Registered: deployments}, nil,
		},
		"with nothing installed the usual namespaces are excluded": {
			server{}, adopt.Installation{Excluded: usual}, []string{"the installation"},
		},
		"who may read nothing is told so": {
			server{policyKind: forbidden, webhookKind: forbidden}, adopt.Installation{Excluded: usual},
			[]string{"mutatingadmissionpolicy plumbline-writer", "mutatingwebhookconfiguration plumbline"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &surveyor{Cluster: clitest.Cluster{Hooks: interceptor.Funcs{Get: tc.server.get}}.Connect(t)}
			got, err := r.installation(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("installation (-want +got):\n%s", diff)
			}
			var missing []string
			for _, u := range r.missing {
				missing = append(missing, u.What)
			}
			if diff := cmp.Diff(tc.missing, missing); diff != "" {
				t.Errorf("not read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAutoscalerSources_ReadTheTarget(t *testing.T) {
	cases := map[string]struct {
		source int
		spec   map[string]any
		want   adopt.Autoscaler
		none   bool
	}{
		"an HPA": {
			0, map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}},
			adopt.Autoscaler{Kind: adopt.HorizontalPodAutoscaler, Namespace: "shop", Name: "a", Target: adopt.GroupKind{Group: "apps", Kind: "StatefulSet"}, TargetName: "db"}, false,
		},
		"a ScaledObject means a Deployment where it says nothing": {
			1, map[string]any{"scaleTargetRef": map[string]any{"name": "web"}},
			adopt.Autoscaler{Kind: adopt.ScaledObject, Namespace: "shop", Name: "a", Target: adopt.GroupKind{Group: "apps", Kind: "Deployment"}, TargetName: "web"}, false,
		},
		"a VPA": {
			2, map[string]any{"targetRef": map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}},
			adopt.Autoscaler{Kind: adopt.VerticalPodAutoscaler, Namespace: "shop", Name: "a", Target: adopt.GroupKind{Group: "example.com", Kind: "Widget"}, TargetName: "w"}, false,
		},
		"one without a target": {0, map[string]any{}, adopt.Autoscaler{}, true},
		"a target of no shape": {0, map[string]any{"scaleTargetRef": "web"}, adopt.Autoscaler{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "a"}, "spec": tc.spec}}
			got, ok := autoscalerSources[tc.source].read(object)
			if ok == tc.none {
				t.Errorf("read: %v", ok)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("autoscaler (-want +got):\n%s", diff)
			}
		})
	}
}
