// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/adopt"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Names that the chart gives, for each name of the Helm release.
const (
	writerPolicy         = "plumbline-writer"
	webhookConfiguration = "plumbline"
)

// installation reads how Plumbline is installed. The kinds that the chart excludes and
// registers are in the writer policy, and in the webhook configuration on
// clusters without such policies.
func (r *surveyor) installation(ctx context.Context) (adopt.Installation, error) {
	policy := &admissionv1.MutatingAdmissionPolicy{}
	err := r.admission(ctx, "MutatingAdmissionPolicy", writerPolicy, policy)
	if err == nil {
		return r.fromPolicy(ctx, policy)
	}
	if !isNotThere(err) {
		if err := r.lack(err, "mutatingadmissionpolicy "+writerPolicy, "no writer stamp is taken as proof of the writer"); err != nil {
			return adopt.Installation{}, err
		}
	}
	configuration := &admissionv1.MutatingWebhookConfiguration{}
	err = r.admission(ctx, "MutatingWebhookConfiguration", webhookConfiguration, configuration)
	switch {
	case err == nil && len(configuration.Webhooks) > 0:
		hook := &configuration.Webhooks[0]
		resources := make([]admissionv1.Rule, 0, len(hook.Rules))
		for _, rule := range hook.Rules {
			resources = append(resources, rule.Rule)
		}
		return adopt.Installation{Excluded: excludedBy(hook.NamespaceSelector), Registered: r.registered(resources)}, nil
	case err != nil && !isNotThere(err):
		err = r.lack(err, "mutatingwebhookconfiguration "+webhookConfiguration, "which kinds are registered is not known, and the namespaces that are never guarded are the usual ones")
		return adopt.Installation{Excluded: excludedBy(nil)}, err
	}
	r.missing = append(r.missing, unread{
		What: "the installation", Why: "neither policy nor webhook configuration of Plumbline is there",
		Then: "no writer stamp is taken as proof of the writer, and the namespaces that are never guarded are the usual ones",
	})
	return adopt.Installation{Excluded: excludedBy(nil)}, nil
}

// fromPolicy believes in stamps from when both the policy and its binding were there.
func (r *surveyor) fromPolicy(ctx context.Context, policy *admissionv1.MutatingAdmissionPolicy) (adopt.Installation, error) {
	var found adopt.Installation
	if constraints := policy.Spec.MatchConstraints; constraints != nil {
		resources := make([]admissionv1.Rule, 0, len(constraints.ResourceRules))
		for _, rule := range constraints.ResourceRules {
			resources = append(resources, rule.Rule)
		}
		found = adopt.Installation{Excluded: excludedBy(constraints.NamespaceSelector), Registered: r.registered(resources)}
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{}
	err := r.admission(ctx, "MutatingAdmissionPolicyBinding", writerPolicy, binding)
	switch {
	case err == nil && binding.Spec.PolicyName == writerPolicy:
		found.StampedSince = policy.CreationTimestamp.Time
		if binding.CreationTimestamp.After(found.StampedSince) {
			found.StampedSince = binding.CreationTimestamp.Time
		}
	case err == nil || isNotThere(err):
		r.missing = append(r.missing, unread{
			What: "mutatingadmissionpolicybinding " + writerPolicy, Why: "it is missing, so that the policy has no effect",
			Then: "no writer stamp is taken as proof of the writer",
		})
	default:
		return found, r.lack(err, "mutatingadmissionpolicybinding "+writerPolicy, "no writer stamp is taken as proof of the writer")
	}
	return found, nil
}

// admission reads one object of the admissionregistration group. It goes by way
// of an unstructured object, so that a server without the kind is told from one
// without the object by the mapper.
func (r *surveyor) admission(ctx context.Context, kind, name string, into any) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
	if err := r.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("decoding %s %s: %w", kind, name, err)
	}
	return nil
}

// isNotThere covers a server that does not have the kind at all.
func isNotThere(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// excludedBy are the namespaces that the chart's selector leaves out.
func excludedBy(selector *metav1.LabelSelector) []string {
	if selector != nil {
		for _, e := range selector.MatchExpressions {
			if e.Key == "kubernetes.io/metadata.name" && e.Operator == metav1.LabelSelectorOpNotIn {
				return slices.Clone(e.Values)
			}
		}
	}
	return specguard.ExcludedNamespaces(actions.SystemNamespace)
}

// registered are the kinds behind the rules' resources, subresources left out.
func (r *surveyor) registered(rules []admissionv1.Rule) map[adopt.GroupKind]bool {
	found := map[adopt.GroupKind]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				kind, err := r.Mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: resource})
				if err == nil { // a kind that the server does not have is not guarded
					found[adopt.GroupKind(kind.GroupKind())] = true
				}
			}
		}
	}
	return found
}
