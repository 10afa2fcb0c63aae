// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// vital is a write that must get through for a cluster to start or stay up.
type vital struct {
	request
	namespace string
	what      string
	// grave: nodes or the control plane are lost without it, not only pods.
	grave bool
}

// vitals are the writes that no webhook should be able to hold up: nodes and
// their leases, certificates of kubelets, leases of the control plane, reviews
// of tokens and rights, and what runs in kube-system.
func vitals() []vital {
	on := func(group, resource string, operation admissionv1.OperationType) request {
		return request{group: group, resource: resource, operation: operation}
	}
	atCluster := func(r request) request { r.clusterScoped = true; return r }
	return []vital{
		{atCluster(on("", "nodes", admissionv1.Create)), "", "registration of nodes", true},
		{atCluster(on("", "nodes/status", admissionv1.Update)), "", "status of nodes", true},
		{atCluster(on("certificates.k8s.io", "certificatesigningrequests", admissionv1.Create)), "", "certificate requests of kubelets", true},
		{on("coordination.k8s.io", "leases", admissionv1.Update), "kube-node-lease", "leases of nodes", true},
		{on("coordination.k8s.io", "leases", admissionv1.Update), "kube-system", "leases of the control plane", true},
		{atCluster(on("authentication.k8s.io", "tokenreviews", admissionv1.Create)), "", "token reviews", true},
		{atCluster(on("authorization.k8s.io", "subjectaccessreviews", admissionv1.Create)), "", "access reviews", true},
		{on("", "pods", admissionv1.Create), "kube-system", "pods in kube-system", false},
		{on("apps", "deployments", admissionv1.Update), "kube-system", "Deployments in kube-system", false},
		{on("apps", "daemonsets", admissionv1.Update), "kube-system", "DaemonSets in kube-system", false},
		{on("discovery.k8s.io", "endpointslices", admissionv1.Update), "kube-system", "EndpointSlices in kube-system", false},
		{on("", "configmaps", admissionv1.Update), "kube-system", "ConfigMaps in kube-system", false},
		{atCluster(on("", "namespaces", admissionv1.Create)), "", "namespaces", false},
	}
}

// starts are what a webhook's own pods are made through.
var starts = []request{
	{group: "", resource: "pods", operation: admissionv1.Create},
	{group: "apps", resource: "replicasets", operation: admissionv1.Create},
	{group: "apps", resource: "deployments", operation: admissionv1.Update},
	{group: "apps", resource: "statefulsets", operation: admissionv1.Update},
}

// checkScopes looks at every webhook of the cluster for what it could block
// while nobody answers. It is about the cluster, not about Plumbline alone:
// whoever calls when it stands still should find the culprit named.
func checkScopes(s *Snapshot) []Finding {
	if !s.Webhooks.known() {
		return []Finding{s.Webhooks.unknown("the objects that webhooks can block")}
	}
	var out []Finding
	for i := range s.Webhooks.Value {
		w := &s.Webhooks.Value[i]
		if f, found := scopeOf(s, w); found {
			out = append(out, f)
		}
		if f, found := deadlockOf(s, w); found {
			out = append(out, f)
		}
	}
	return out
}

func scopeOf(s *Snapshot, w *Webhook) (Finding, bool) {
	if w.FailurePolicy != admissionv1.Fail && !isOurs(w) {
		return Finding{}, false
	}
	var blocked []string
	grave := false
	for _, v := range vitals() {
		if v.matchesAny(w.Rules) && (v.namespace == "" || selects(w.NamespaceSelector, s.namespaceLabels(v.namespace))) {
			blocked = append(blocked, v.what)
			grave = grave || v.grave
		}
	}
	if len(blocked) == 0 {
		return Finding{}, false
	}
	f := Finding{Severity: Warning, Object: w.object(), Fix: scopeFix(w)}
	if w.FailurePolicy != admissionv1.Fail {
		f.Message = fmt.Sprintf("%s sees %s; it can slow them down by its timeout of %d s", w.Name, named(blocked), w.TimeoutSeconds)
		return f, true
	}
	if grave {
		f.Severity = Critical
	}
	f.Message = fmt.Sprintf("%s (failurePolicy Fail%s) blocks %s while it is away", w.Name, wildcardWords(w), named(blocked))
	return soften(w, f), true
}

func wildcardWords(w *Webhook) string {
	if slices.ContainsFunc(w.Rules, func(r admissionv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, "*") && (slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "*/*"))
	}) {
		return ", every kind"
	}
	return ""
}

// deadlockOf finds a webhook that is asked before its own pods can start.
func deadlockOf(s *Snapshot, w *Webhook) (Finding, bool) {
	if w.FailurePolicy != admissionv1.Fail || w.Client.Service == nil {
		return Finding{}, false
	}
	namespace := w.Client.Service.Namespace
	if !selects(w.NamespaceSelector, s.namespaceLabels(namespace)) ||
		!slices.ContainsFunc(starts, func(r request) bool { return r.matchesAny(w.Rules) }) {
		return Finding{}, false
	}
	return soften(w, Finding{Severity: Critical, Object: w.object(), Fix: scopeFix(w),
		Message: fmt.Sprintf("%s (failurePolicy Fail) is asked before its own pods in namespace %s may start: once all are gone no pod comes back", w.Name, namespace)}), true
}

// soften lowers a finding by one step where the webhook filters by what cannot
// be judged from here, and says so.
func soften(w *Webhook, f Finding) Finding {
	var filter string
	switch {
	case len(w.Conditions) > 0:
		filter = "matchConditions"
	case !isEmptySelector(w.ObjectSelector):
		filter = "objectSelector"
	default:
		return f
	}
	f.Message += ", unless its " + filter + " let them pass"
	if f.Severity == Critical {
		f.Severity = Warning
	} else {
		f.Severity = Info
	}
	return f
}

func scopeFix(w *Webhook) string {
	if isOurs(w) {
		return reinstallFix
	}
	return "narrow its rules, set failurePolicy: Ignore, or exclude the namespaces:\n" +
		"namespaceSelector:\n  matchExpressions:\n  - {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-node-lease, " + ownNamespaceOf(w) + "]}"
}

func ownNamespaceOf(w *Webhook) string {
	if w.Client.Service != nil {
		return w.Client.Service.Namespace
	}
	return "its own"
}
