// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// H3 of the guard's review: a second write had no proof where the content of a kind is
// not under spec.
func TestTwoWritesInARowByATrustedWriterAreInSyncForEachKind(t *testing.T) {
	const template = `{"spec":{"containers":[{"name":"app","image":"a:1"}]}}`
	for kind, tc := range map[string]struct {
		apiVersion, body, change string
		// generations: the API server counts the writes.
		generations bool
	}{
		"ConfigMap":               {"v1", `{"data":{"level":"info"}}`, `/data/level = "warn"`, false},
		"LimitRange":              {"v1", `{"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}}`, `/spec/limits = [{"type":"Pod","max":{"cpu":"2"}}]`, false},
		"PersistentVolumeClaim":   {"v1", `{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`, `/spec/resources/requests/storage = "2Gi"`, false},
		"PodTemplate":             {"v1", `{"template":` + template + `}`, `/template/spec/containers/[name=app]/image = "a:2"`, true},
		"ReplicationController":   {"v1", `{"spec":{"template":` + template + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
		"ResourceQuota":           {"v1", `{"spec":{"hard":{"pods":"1"}}}`, `/spec/hard/pods = "2"`, false},
		"Service":                 {"v1", `{"spec":{"type":"ClusterIP"}}`, `/spec/type = "NodePort"`, false},
		"ServiceAccount":          {"v1", `{"automountServiceAccountToken":false}`, `/automountServiceAccountToken = true`, false},
		"ControllerRevision":      {"apps/v1", `{"revision":1,"data":{"a":1}}`, `/revision = 2`, false},
		"DaemonSet":               {"apps/v1", `{"spec":{"template":` + template + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
		"Deployment":              {"apps/v1", `{"spec":{"template":` + template + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
		"ReplicaSet":              {"apps/v1", `{"spec":{"template":` + template + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
		"StatefulSet":             {"apps/v1", `{"spec":{"template":` + template + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
		"HorizontalPodAutoscaler": {"autoscaling/v2", `{"spec":{"maxReplicas":3}}`, `/spec/maxReplicas = 4`, false},
		"CronJob":                 {"batch/v1", `{"spec":{"schedule":"0 0 * * *"}}`, `/spec/schedule = "1 0 * * *"`, true},
		"Job":                     {"batch/v1", `{"spec":{"suspend":true}}`, `/spec/suspend = false`, true},
		"PodDisruptionBudget":     {"policy/v1", `{"spec":{"minAvailable":1}}`, `/spec/minAvailable = 2`, true},
		"Ingress":                 {"networking.k8s.io/v1", `{"spec":{"ingressClassName":"a"}}`, `/spec/ingressClassName = "b"`, true},
		"NetworkPolicy":           {"networking.k8s.io/v1", `{"spec":{"policyTypes":["Ingress"]}}`, `/spec/policyTypes = ["Egress"]`, true},
		"Role":                    {"rbac.authorization.k8s.io/v1", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, `/rules = [{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}]`, false},
		"RoleBinding":             {"rbac.authorization.k8s.io/v1", `{"subjects":[{"kind":"User","name":"a"}],"roleRef":{"kind":"Role","name":"r"}}`, `/subjects = [{"kind":"User","name":"b"}]`, false},
		"ResourceClaimTemplate":   {"resource.k8s.io/v1", `{"spec":{"spec":{"a":1}}}`, `/spec/spec/a = 2`, false},
		"Widget":                  {"example.org/v1", `{"spec":{"size":"a"}}`, `/spec/size = "b"`, true},
		"Flat":                    {"example.org/v1", `{"values":{"size":"a"},"enabled":true}`, `/values/size = "b"`, true},
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.kind(tc.apiVersion, kind)
			uncounted := func() {
				if !tc.generations {
					w.live.Generation, w.generation = 0, 0
				}
			}
			w.create(write{user: user("ci")}, tc.body)
			uncounted()
			w.observe(false, false)
			w.update(write{user: user("ci"), manager: "pipeline", applies: true, changes: parseChanges(t, w.live.Body, w.gvk, tc.change)})
			uncounted()
			w.observe(false, false)
			if w.state.Drift != v1alpha1.StateInSync || w.state.Authorised.Number != 2 {
				t.Error(w.report())
			}
		})
	}
}
