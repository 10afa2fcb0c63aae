// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// right is one thing that the demo's user must be allowed to do.
type right struct {
	verb, group, resource, subresource string
	namespace                          string // "" for the whole cluster
}

func (r right) String() string {
	name := r.resource
	if r.group != "" {
		name += "." + r.group
	}
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	if r.namespace == "" {
		return fmt.Sprintf("%s %s", r.verb, name)
	}
	return fmt.Sprintf("%s %s in %s", r.verb, name, r.namespace)
}

// everything is the cluster administrator's right, which holds all others.
var everything = right{verb: "*", group: "*", resource: "*"}

// installed lists what Helm creates, by group and resource; a test holds it
// against the rendered chart. The value says whether it lives in a namespace.
var installed = map[[2]string]bool{
	{"", "configmaps"}:                            true,
	{"", "secrets"}:                               true,
	{"", "serviceaccounts"}:                       true,
	{"", "services"}:                              true,
	{"apps", "deployments"}:                       true,
	{"coordination.k8s.io", "leases"}:             true,
	{"networking.k8s.io", "networkpolicies"}:      true,
	{"policy", "poddisruptionbudgets"}:            true,
	{"rbac.authorization.k8s.io", "roles"}:        true,
	{"rbac.authorization.k8s.io", "rolebindings"}: true,

	{"rbac.authorization.k8s.io", "clusterroles"}:                         false,
	{"rbac.authorization.k8s.io", "clusterrolebindings"}:                  false,
	{"apiextensions.k8s.io", "customresourcedefinitions"}:                 false,
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations"}:     false,
	{"admissionregistration.k8s.io", "validatingwebhookconfigurations"}:   false,
	{"admissionregistration.k8s.io", "mutatingadmissionpolicies"}:         false,
	{"admissionregistration.k8s.io", "mutatingadmissionpolicybindings"}:   false,
	{"admissionregistration.k8s.io", "validatingadmissionpolicies"}:       false,
	{"admissionregistration.k8s.io", "validatingadmissionpolicybindings"}: false,
}

// neededRights lists what the demo does as its user: Helm's writes, and the story.
func neededRights() []right {
	var needed []right
	for kind, namespaced := range installed {
		namespace := ""
		if namespaced {
			namespace = systemNamespace
		}
		for _, verb := range []string{"create", "get", "patch", "delete"} {
			needed = append(needed, right{verb: verb, group: kind[0], resource: kind[1], namespace: namespace})
		}
	}
	// Who lacks these may create no role that holds more than he has himself.
	for _, resource := range []string{"roles", "clusterroles"} {
		for _, verb := range []string{"bind", "escalate"} {
			needed = append(needed, right{verb: verb, group: "rbac.authorization.k8s.io", resource: resource})
		}
	}
	needed = append(needed,
		right{verb: "list", resource: "nodes"},
		right{verb: "list", group: "apiextensions.k8s.io", resource: "customresourcedefinitions"},
		right{verb: "create", resource: "namespaces"},
		right{verb: "delete", resource: "namespaces"},
		right{verb: "impersonate", resource: "users"}, // alice and bob
		right{verb: "create", resource: "serviceaccounts", subresource: "token", namespace: ciNamespace},
		right{verb: "create", resource: "pods", namespace: ciNamespace},
		right{verb: "create", group: "plumbline.dev", resource: "environments"},
		right{verb: "create", group: "plumbline.dev", resource: "specguards", namespace: shopNamespace},
		right{verb: "get", group: "plumbline.dev", resource: "baselines", namespace: shopNamespace},
		right{verb: "create", group: "plumbline.dev", resource: "remediationpolicies"},
		right{verb: "patch", group: "plumbline.dev", resource: "remediationpolicies"},
		right{verb: "delete", group: "plumbline.dev", resource: "remediationpolicies"},
		right{verb: "patch", group: "plumbline.dev", resource: "remediationplans", namespace: shopNamespace},
		right{verb: "list", group: "plumbline.dev", resource: "effectivenessassessments", namespace: shopNamespace},
		right{verb: "create", group: "plumbline.dev", resource: "abreleases", namespace: splitNamespace},
		right{verb: "patch", group: "plumbline.dev", resource: "abreleases", namespace: splitNamespace},
		right{verb: "get", resource: "pods", subresource: "proxy", namespace: systemNamespace}, // the records
		right{verb: "get", resource: "pods", subresource: "proxy", namespace: splitNamespace},  // the orders
		right{verb: "patch", group: "apps", resource: "deployments", subresource: "scale", namespace: systemNamespace},
	)
	slices.SortFunc(needed, func(a, b right) int { return strings.Compare(a.String(), b.String()) })
	return needed
}
