// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind of objects whose authors are known by the values of some fields.
type kind struct {
	schema.GroupVersionKind
	plural string
	// body is an object but for its metadata, with VALUE where the fields are.
	body string
	// fields are JSON pointers to strings, each of which names its author.
	fields []string
	// scales and status: the kind has the subresource.
	scales, status bool
	// atomic: the fields lie in a list without keys. A trusted change beside a foreign
	// one may be withheld, so the twin does not know the authorized values.
	atomic bool
}

const (
	template       = `{"metadata":{"labels":{"app":"NAME"}},"spec":{RESTART"containers":[{"name":"app","image":"registry.example/VALUE:1","env":[{"name":"AUTHOR","value":"VALUE"}]}]}}`
	templateFields = "/spec/template/spec/containers/0/image /spec/template/spec/containers/0/env/0/value"
	// jobTemplate has its fields where the API server lets a suspended Job change.
	jobTemplate = `{"metadata":{"annotations":{"author":"VALUE"}},"spec":{"restartPolicy":"Never","nodeSelector":{"author":"VALUE"},"containers":[{"name":"app","image":"registry.example/shop:1"}]}}`
)

var kinds = []kind{
	{gvk("apps/v1", "Deployment"), "deployments", `{"spec":{"replicas":0,"selector":{"matchLabels":{"app":"NAME"}},"template":` + template + `}}`, strings.Fields(templateFields), true, true, false},
	{gvk("apps/v1", "StatefulSet"), "statefulsets", `{"spec":{"replicas":0,"serviceName":"x","selector":{"matchLabels":{"app":"NAME"}},"template":` + template + `}}`, strings.Fields(templateFields), true, true, false},
	{gvk("apps/v1", "ReplicaSet"), "replicasets", `{"spec":{"replicas":0,"selector":{"matchLabels":{"app":"NAME"}},"template":` + template + `}}`, strings.Fields(templateFields), true, true, false},
	{gvk("apps/v1", "DaemonSet"), "daemonsets", `{"spec":{"selector":{"matchLabels":{"app":"NAME"}},"template":` + template + `}}`, strings.Fields(templateFields), false, true, false},
	{gvk("batch/v1", "CronJob"), "cronjobs", `{"spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":{"template":` + template + `}}}}`,
		strings.Fields("/spec/jobTemplate/spec/template/spec/containers/0/image /spec/jobTemplate/spec/template/spec/containers/0/env/0/value"), false, true, false},
	{gvk("batch/v1", "Job"), "jobs", `{"spec":{"suspend":true,"template":` + jobTemplate + `}}`,
		strings.Fields("/spec/template/metadata/annotations/author /spec/template/spec/nodeSelector/author"), false, true, false},
	{gvk("v1", "ConfigMap"), "configmaps", `{"data":{"a":"VALUE","b":"VALUE","c":"VALUE"}}`, strings.Fields("/data/a /data/b /data/c"), false, false, false},
	{gvk("rbac.authorization.k8s.io/v1", "Role"), "roles", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"resourceNames":["VALUE"]},{"apiGroups":[""],"resources":["services"],"verbs":["get"],"resourceNames":["VALUE"]}]}`,
		strings.Fields("/rules/0/resourceNames/0 /rules/1/resourceNames/0"), false, false, true},
	{gvk("networking.k8s.io/v1", "NetworkPolicy"), "networkpolicies", `{"spec":{"policyTypes":["Ingress"],"podSelector":{"matchLabels":{"a":"VALUE","b":"VALUE"}}}}`,
		strings.Fields("/spec/podSelector/matchLabels/a /spec/podSelector/matchLabels/b"), false, false, false},
	{gvk("autoscaling/v2", "HorizontalPodAutoscaler"), "horizontalpodautoscalers", `{"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"VALUE"}}}`,
		strings.Fields("/spec/scaleTargetRef/name"), false, true, false},
	{gvk(customGroup+"/v1", "Widget"), "widgets", `{"spec":{"replicas":0,"a":"VALUE","deep":{"b":"VALUE"}},"extra":{"c":"VALUE"}}`, strings.Fields("/spec/a /spec/deep/b /extra/c"), true, true, false},
}

// customGroup is the group of the custom kind, which has no strategic merge patch.
const customGroup = "example.org"

// withSubresources has a custom kind serve /status and /scale.
func withSubresources(crd *apiextensions.CustomResourceDefinition) {
	crd.Spec.Versions[0].Subresources = &apiextensions.CustomResourceSubresources{
		Status: &apiextensions.CustomResourceSubresourceStatus{},
		Scale:  &apiextensions.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
	}
}

// pathOf is a field as findings name it.
func (k kind) pathOf(field string) string {
	if k.atomic {
		return "/" + strings.Split(field, "/")[1]
	}
	return strings.NewReplacer("/containers/0", "/containers/[name=app]", "/env/0", "/env/[name=AUTHOR]").Replace(field)
}

func gvk(apiVersion, name string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, name)
}
