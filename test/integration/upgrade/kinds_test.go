// SPDX-License-Identifier: Apache-2.0

//go:build integration

package upgrade

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a kind that can be guarded, with an object of it.
type kind struct {
	apiVersion, name, resource string
	// body is an object but for its metadata, with NAME for its name.
	body string
	// path and value are the change of a foreign writer; empty for a claim, of which the API
	// server lets people change only fields outside of the canonical form.
	path, value string
	// unstamped kinds are never registered with the webhook: their objects are imported,
	// and no stamp tells of their writers.
	unstamped bool
}

// podSpec uses the fields of a pod that have defaults, and some that have none.
const podSpec = `{
	"serviceAccountName":"NAME",
	"securityContext":{"runAsNonRoot":true,"sysctls":[{"name":"kernel.shm_rmid_forced","value":"0"}]},
	"tolerations":[{"key":"spot","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}],
	"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"NAME"}}}],
	"initContainers":[{"name":"mesh","image":"registry.example/mesh:1","restartPolicy":"Always"}],
	"containers":[{
		"name":"app","image":"registry.example/shop:1",
		"env":[{"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},{"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}],
		"ports":[{"containerPort":80}],
		"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"1","memory":"128Mi"}},
		"livenessProbe":{"httpGet":{"path":"/live","port":80}},
		"readinessProbe":{"grpc":{"port":81}},
		"startupProbe":{"tcpSocket":{"port":80}},
		"lifecycle":{"preStop":{"httpGet":{"path":"/stop","port":80}}},
		"volumeMounts":[{"name":"settings","mountPath":"/etc/settings","readOnly":true}]}],
	"volumes":[
		{"name":"settings","projected":{"sources":[{"configMap":{"name":"first"}},{"serviceAccountToken":{"path":"token"}},{"downwardAPI":{"items":[{"path":"name","fieldRef":{"fieldPath":"metadata.name"}}]}}]}},
		{"name":"host","hostPath":{"path":"/var/log"}},
		{"name":"disk","iscsi":{"targetPortal":"10.1.2.3","iqn":"iqn.2001-04.example:disk","lun":1}},
		{"name":"scratch","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}`

const (
	metadata  = `{"labels":{"app":"NAME"}}`
	template  = `{"metadata":` + metadata + `,"spec":` + podSpec + `}`
	selector  = `{"matchLabels":{"app":"NAME"}}`
	claimSpec = `{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`
	evilImage = `"registry.example/evil:1"`
)

// jobSpec is that of a Job whose pods never restart.
var jobSpec = `{"suspend":true,"parallelism":2,"completions":4,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]}]},"template":` +
	strings.Replace(template, `"securityContext"`, `"restartPolicy":"Never","securityContext"`, 1) + `}`

// kinds are all kinds that can be guarded on the older API server, and a custom one.
var kinds = []kind{
	{"v1", "ConfigMap", "configmaps", `{"data":{"level":"info"},"binaryData":{"key":"AAEC"}}`, "/data/level", `"debug"`, false},
	{"v1", "LimitRange", "limitranges", `{"spec":{"limits":[{"type":"PersistentVolumeClaim","max":{"storage":"1Ti"}}]}}`, "/spec/limits/0/max/storage", `"2Ti"`, false},
	{"v1", "PersistentVolumeClaim", "persistentvolumeclaims", `{"spec":` + claimSpec + `}`, "", "", false},
	{"v1", "Pod", "pods", `{"spec":` + podSpec + `}`, "/spec/containers/0/image", evilImage, true},
	{"v1", "PodTemplate", "podtemplates", `{"template":` + template + `}`, "/template/spec/containers/0/image", evilImage, false},
	{"v1", "ReplicationController", "replicationcontrollers", `{"spec":{"replicas":0,"selector":{"app":"NAME"},"template":` + template + `}}`, "/spec/template/spec/containers/0/image", evilImage, false},
	{"v1", "ResourceQuota", "resourcequotas", `{"spec":{"hard":{"count/widgets.nowhere.example":"10"}}}`, "/spec/hard/count~1widgets.nowhere.example", `"20"`, false},
	{"v1", "Service", "services", `{"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP","selector":{"app":"NAME"},"ports":[{"port":80}]}}`, "/spec/selector/app", `"evil"`, false},
	{"v1", "ServiceAccount", "serviceaccounts", `{"automountServiceAccountToken":false,"imagePullSecrets":[{"name":"pull"}]}`, "/automountServiceAccountToken", `true`, false},
	{"apps/v1", "ControllerRevision", "controllerrevisions", `{"data":{"spec":{"replicas":1}},"revision":1}`, "/revision", `2`, false},
	{"apps/v1", "DaemonSet", "daemonsets", `{"spec":{"selector":` + selector + `,"template":` + template + `}}`, "/spec/template/spec/containers/0/image", evilImage, false},
	{"apps/v1", "Deployment", "deployments", `{"spec":{"replicas":2,"selector":` + selector + `,"template":` + template + `}}`, "/spec/template/spec/containers/0/image", evilImage, false},
	{"apps/v1", "ReplicaSet", "replicasets", `{"spec":{"replicas":2,"selector":` + selector + `,"template":` + template + `}}`, "/spec/template/spec/containers/0/image", evilImage, false},
	{"apps/v1", "StatefulSet", "statefulsets", `{"spec":{"serviceName":"x","selector":` + selector + `,"template":` + template + `,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":` + claimSpec + `}]}}`, "/spec/template/spec/containers/0/image", evilImage, false},
	{"autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", `{"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"NAME"},"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}},
		"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}}]}}`, "/spec/maxReplicas", `30`, false},
	{"batch/v1", "CronJob", "cronjobs", `{"spec":{"schedule":"0 0 1 1 *","suspend":true,"jobTemplate":{"spec":` + jobSpec + `}}}`, "/spec/schedule", `"* * * * *"`, false},
	{"batch/v1", "Job", "jobs", `{"spec":` + jobSpec + `}`, "/spec/parallelism", `9`, false},
	{"networking.k8s.io/v1", "Ingress", "ingresses", `{"spec":{"rules":[{"host":"NAME.example","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"NAME","port":{"number":80}}}}]}}]}}`, "/spec/rules/0/host", `"evil.example"`, false},
	{"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", `{"spec":{"podSelector":` + selector + `,"ingress":[{"from":[{"ipBlock":{"cidr":"10.0.0.0/8"}}],"ports":[{"port":80}]}]}}`, "/spec/podSelector/matchLabels/app", `"evil"`, false},
	{"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", `{"spec":{"minAvailable":1,"selector":` + selector + `}}`, "/spec/minAvailable", `0`, false},
	{"rbac.authorization.k8s.io/v1", "Role", "roles", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, "/rules/0/verbs", `["*"]`, false},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", `{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"NAME"},"subjects":[{"kind":"ServiceAccount","name":"NAME"}]}`, "/subjects/0/name", `"evil"`, false},
	{"example.org/v1", "Widget", "widgets", `{"spec":{"color":"red","port":80,"nothing":{}}}`, "/spec/color", `"black"`, false},
}

func (k *kind) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(k.apiVersion, k.name)
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk().Group, Resource: k.resource}
}

// named is an object of the kind, as far as its key.
func (k *kind) named(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k.gvk())
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// object is a whole object of the kind.
func (k *kind) object(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(k.body, "NAME", name)), &u.Object); err != nil {
		t.Fatalf("reading the %s of this test: %v", k.name, err)
	}
	u.SetGroupVersionKind(k.gvk())
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{"app": name})
	return u
}

// drift is the patch of a foreign writer.
func (k *kind) drift() []byte {
	return []byte(`[{"op":"add","path":"` + k.path + `","value":` + k.value + `}]`)
}
