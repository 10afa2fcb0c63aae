// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func parseVersion(info *version.Info) doctor.ServerVersion {
	number := func(text string) int { // managed platforms write 30+
		n, err := strconv.Atoi(strings.TrimRight(text, "+"))
		if err != nil {
			return 0
		}
		return n
	}
	return doctor.ServerVersion{GitVersion: info.GitVersion, Major: number(info.Major), Minor: number(info.Minor)}
}

func flatten(lists []*metav1.APIResourceList) []doctor.Resource {
	var out []doctor.Resource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // an address that no request could use
		}
		for _, resource := range list.APIResources {
			out = append(out, doctor.Resource{
				Group: gv.Group, Version: gv.Version,
				Name: resource.Name, Kind: resource.Kind, Namespaced: resource.Namespaced,
			})
		}
	}
	return out
}

func (r *reader) webhooks(ctx context.Context) doctor.Read[[]doctor.Webhook] {
	var out []doctor.Webhook
	mutating := &admissionv1.MutatingWebhookConfigurationList{}
	if err := r.client.List(ctx, mutating); err != nil {
		return result(out, "list mutatingwebhookconfigurations", err)
	}
	for i := range mutating.Items {
		for j := range mutating.Items[i].Webhooks {
			out = append(out, mutatingWebhook(&mutating.Items[i].ObjectMeta, &mutating.Items[i].Webhooks[j]))
		}
	}
	validating := &admissionv1.ValidatingWebhookConfigurationList{}
	err := r.client.List(ctx, validating)
	for i := range validating.Items {
		for j := range validating.Items[i].Webhooks {
			out = append(out, validatingWebhook(&validating.Items[i].ObjectMeta, &validating.Items[i].Webhooks[j]))
		}
	}
	return result(out, "list validatingwebhookconfigurations", err)
}

// The API server fills in every default; those here are for fakes and old servers.
const defaultTimeout = 10

func mutatingWebhook(m *metav1.ObjectMeta, w *admissionv1.MutatingWebhook) doctor.Webhook {
	return doctor.Webhook{
		Mutating: true, Configuration: m.Name, Labels: m.Labels, Annotations: m.Annotations, Name: w.Name, Client: w.ClientConfig, Rules: w.Rules,
		FailurePolicy: ptr.Deref(w.FailurePolicy, admissionv1.Fail), MatchPolicy: ptr.Deref(w.MatchPolicy, admissionv1.Equivalent),
		SideEffects: ptr.Deref(w.SideEffects, ""), NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		TimeoutSeconds: ptr.Deref(w.TimeoutSeconds, defaultTimeout), Conditions: w.MatchConditions,
		Reinvoked: ptr.Deref(w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy) == admissionv1.IfNeededReinvocationPolicy,
	}
}

func validatingWebhook(m *metav1.ObjectMeta, w *admissionv1.ValidatingWebhook) doctor.Webhook {
	return doctor.Webhook{
		Configuration: m.Name, Labels: m.Labels, Annotations: m.Annotations, Name: w.Name, Client: w.ClientConfig, Rules: w.Rules,
		FailurePolicy: ptr.Deref(w.FailurePolicy, admissionv1.Fail), MatchPolicy: ptr.Deref(w.MatchPolicy, admissionv1.Equivalent),
		SideEffects: ptr.Deref(w.SideEffects, ""), NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		TimeoutSeconds: ptr.Deref(w.TimeoutSeconds, defaultTimeout), Conditions: w.MatchConditions,
	}
}

// policies reads both kinds; a server that has no policies which mutate has none
// of them, and that is an answer.
func (r *reader) policies(ctx context.Context) doctor.Read[doctor.Policies] {
	var out doctor.Policies
	lists := []struct {
		right string
		list  client.ObjectList
		add   func()
	}{
		policyList(&out), policyBindingList(&out), mutatingPolicyList(&out), mutatingBindingList(&out),
	}
	for _, l := range lists {
		switch err := r.client.List(ctx, l.list); {
		case meta.IsNoMatchError(err):
		case err != nil:
			return result(out, l.right, err)
		default:
			l.add()
		}
	}
	return doctor.Got(out)
}

type policyLister = struct {
	right string
	list  client.ObjectList
	add   func()
}

func policyList(out *doctor.Policies) policyLister {
	list := &admissionv1.ValidatingAdmissionPolicyList{}
	return policyLister{"list validatingadmissionpolicies", list, func() {
		for i := range list.Items {
			item := &list.Items[i]
			p := doctor.Policy{Kind: "ValidatingAdmissionPolicy", Name: item.Name, Labels: item.Labels, Effects: len(item.Spec.Validations), FailurePolicy: ptr.Deref(item.Spec.FailurePolicy, admissionv1.Fail)}
			fillPolicy(&p, item.Spec.ParamKind, item.Spec.MatchConstraints)
			for _, condition := range item.Spec.MatchConditions {
				p.Conditions = append(p.Conditions, condition.Name)
			}
			if checking := item.Status.TypeChecking; checking != nil {
				for _, w := range checking.ExpressionWarnings {
					p.TypeWarnings = append(p.TypeWarnings, w.FieldRef+": "+w.Warning)
				}
			}
			out.Policies = append(out.Policies, p)
		}
	}}
}

func mutatingPolicyList(out *doctor.Policies) policyLister {
	list := &admissionv1.MutatingAdmissionPolicyList{}
	return policyLister{"list mutatingadmissionpolicies", list, func() {
		for i := range list.Items {
			item := &list.Items[i]
			p := doctor.Policy{Kind: "MutatingAdmissionPolicy", Name: item.Name, Labels: item.Labels, Effects: len(item.Spec.Mutations), FailurePolicy: ptr.Deref(item.Spec.FailurePolicy, admissionv1.Fail)}
			fillPolicy(&p, item.Spec.ParamKind, item.Spec.MatchConstraints)
			for _, condition := range item.Spec.MatchConditions {
				p.Conditions = append(p.Conditions, condition.Name)
			}
			out.Policies = append(out.Policies, p)
		}
	}}
}

func fillPolicy(p *doctor.Policy, param *admissionv1.ParamKind, match *admissionv1.MatchResources) {
	if param != nil {
		p.ParamKind = param.Kind
	}
	if match != nil {
		p.Rules, p.Excluded = match.ResourceRules, match.ExcludeResourceRules
		p.NamespaceSelector, p.ObjectSelector = match.NamespaceSelector, match.ObjectSelector
	}
}

func policyBindingList(out *doctor.Policies) policyLister {
	list := &admissionv1.ValidatingAdmissionPolicyBindingList{}
	return policyLister{"list validatingadmissionpolicybindings", list, func() {
		for i := range list.Items {
			spec := &list.Items[i].Spec
			out.Bindings = append(out.Bindings, doctor.Binding{
				Kind: "ValidatingAdmissionPolicyBinding", Name: list.Items[i].Name, Policy: spec.PolicyName,
				Actions: spec.ValidationActions, Param: spec.ParamRef, Restricted: restricts(spec.MatchResources),
			})
		}
	}}
}

func mutatingBindingList(out *doctor.Policies) policyLister {
	list := &admissionv1.MutatingAdmissionPolicyBindingList{}
	return policyLister{"list mutatingadmissionpolicybindings", list, func() {
		for i := range list.Items {
			spec := &list.Items[i].Spec
			out.Bindings = append(out.Bindings, doctor.Binding{
				Kind: "MutatingAdmissionPolicyBinding", Name: list.Items[i].Name, Policy: spec.PolicyName,
				Param: spec.ParamRef, Restricted: restricts(spec.MatchResources),
			})
		}
	}}
}

// restricts looks past the empty selectors that the API server fills in.
func restricts(m *admissionv1.MatchResources) bool {
	empty := func(s *metav1.LabelSelector) bool {
		return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
	}
	return m != nil && (len(m.ResourceRules)+len(m.ExcludeResourceRules) > 0 || !empty(m.NamespaceSelector) || !empty(m.ObjectSelector))
}

// namespaces leaves out those that are being deleted: nothing can be tried there.
func (r *reader) namespaces(ctx context.Context) doctor.Read[map[string]map[string]string] {
	out := map[string]map[string]string{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				out[list.Items[i].Name] = list.Items[i].Labels
			}
		}
	})
	return result(out, "list namespaces", err)
}

func (r *reader) guards(ctx context.Context) doctor.Read[[]doctor.Guard] {
	var out []doctor.Guard
	cluster := &v1alpha1.ClusterSpecGuardList{}
	err := r.pages(ctx, cluster, func() {
		for _, g := range cluster.Items {
			out = append(out, doctor.Guard{Name: g.Name, Generation: g.Generation, Spec: g.Spec.GuardSpec, NamespaceSelector: g.Spec.NamespaceSelector, Status: g.Status})
		}
	})
	if err != nil && !meta.IsNoMatchError(err) { // without the kind its guards are gone; install.kinds tells that
		return result(out, "list clusterspecguards.plumbline.dev", err)
	}
	list := &v1alpha1.SpecGuardList{}
	err = r.pages(ctx, list, func() {
		for _, g := range list.Items {
			out = append(out, doctor.Guard{Namespace: g.Namespace, Name: g.Name, Generation: g.Generation, Spec: g.Spec, Status: g.Status})
		}
	})
	return result(out, "list specguards.plumbline.dev", err)
}

func (r *reader) baselines(ctx context.Context) doctor.Read[doctor.Baselines] {
	var out doctor.Baselines
	list := &v1alpha1.BaselineList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			out.Add(&list.Items[i], r.snapshot.Now)
		}
	})
	return result(out, "list baselines.plumbline.dev", err)
}

func (r *reader) roles(ctx context.Context) doctor.Read[doctor.Roles] {
	out := doctor.Roles{ClusterRoles: map[string][]rbacv1.PolicyRule{}, Roles: map[string][]rbacv1.PolicyRule{}}
	clusterRoles, roles := &rbacv1.ClusterRoleList{}, &rbacv1.RoleList{}
	clusterBindings, bindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	for _, l := range []struct {
		right string
		list  client.ObjectList
		add   func()
	}{
		{"list clusterroles", clusterRoles, func() {
			for _, role := range clusterRoles.Items {
				out.ClusterRoles[role.Name] = role.Rules
			}
		}},
		{"list roles", roles, func() {
			for _, role := range roles.Items {
				out.Roles[role.Namespace+"/"+role.Name] = role.Rules
			}
		}},
		{"list clusterrolebindings", clusterBindings, func() {
			for _, b := range clusterBindings.Items {
				out.ClusterBindings = append(out.ClusterBindings, doctor.RoleBinding{Role: b.RoleRef, Subjects: b.Subjects})
			}
		}},
		{"list rolebindings", bindings, func() {
			for _, b := range bindings.Items {
				out.Bindings = append(out.Bindings, doctor.RoleBinding{Namespace: b.Namespace, Role: b.RoleRef, Subjects: b.Subjects})
			}
		}},
	} {
		if err := r.pages(ctx, l.list, l.add); err != nil {
			return result(out, l.right, err)
		}
	}
	return doctor.Got(out)
}

// apiServers are those that renewed their identity lease in time.
func (r *reader) apiServers(ctx context.Context) doctor.Read[[]string] {
	var out []string
	list := &coordinationv1.LeaseList{}
	err := r.client.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"apiserver.kubernetes.io/identity": "kube-apiserver"})
	for i := range list.Items {
		if lease := leaseOf(&list.Items[i]); r.snapshot.Now.Before(lease.Renewed.Add(lease.Duration)) {
			out = append(out, cmp.Or(lease.Holder, list.Items[i].Name))
		}
	}
	return result(out, "list leases in kube-system", err)
}
