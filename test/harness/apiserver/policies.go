// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// lastPolicy refuses one ConfigMap, and is made after all policies of the chart.
const lastPolicy = "harness-last-policy"

// AwaitPolicies waits until the validating policies that were made so far are enforced;
// limit bounds the wait. The API server compiles its policies and bindings together, in
// the order of its watches, so it enforces all others once it enforces the last one.
func AwaitPolicies(ctx context.Context, admin client.Client, limit time.Duration) error {
	policy, binding := lastPolicyObjects()
	if err := errors.Join(admin.Create(ctx, policy), admin.Create(ctx, binding)); err != nil {
		return fmt.Errorf("creating the last policy: %w", err)
	}
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: lastPolicy}}
	err := waits.Until(ctx, limit, "the validating policies are enforced", func(ctx context.Context) error {
		switch err := admin.Create(ctx, probe.DeepCopy(), client.DryRunAll); {
		case apierrors.IsInvalid(err):
			return nil
		case err != nil:
			return fmt.Errorf("creating a ConfigMap that the last policy refuses: %w", err)
		}
		return errors.New("the last policy refuses nothing")
	})
	return errors.Join(err, admin.Delete(ctx, binding), admin.Delete(ctx, policy))
}

func lastPolicyObjects() (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: lastPolicy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "object.metadata.name != '" + lastPolicy + "'"}},
		},
	}
	return policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: lastPolicy},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: lastPolicy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}
