// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const podTemplate = `{"spec":{"containers":[{"name":"app","image":"a:1"}]}}`

// writesOfKinds has a creation and a change for each kind that a guard may name, and for
// two custom kinds.
var writesOfKinds = map[string]struct {
	apiVersion, body, change string
	// generations: the API server counts the writes.
	generations bool
}{
	"ConfigMap":               {"v1", `{"data":{"level":"info"}}`, `/data/level = "warn"`, false},
	"LimitRange":              {"v1", `{"spec":{"limits":[{"type":"Pod","max":{"cpu":"1"}}]}}`, `/spec/limits = [{"type":"Pod","max":{"cpu":"2"}}]`, false},
	"PersistentVolumeClaim":   {"v1", `{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`, `/spec/resources/requests/storage = "2Gi"`, false},
	"Pod":                     {"v1", podTemplate, `/spec/containers/[name=app]/image = "a:2"`, false},
	"PodTemplate":             {"v1", `{"template":` + podTemplate + `}`, `/template/spec/containers/[name=app]/image = "a:2"`, true},
	"ReplicationController":   {"v1", `{"spec":{"template":` + podTemplate + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
	"ResourceQuota":           {"v1", `{"spec":{"hard":{"pods":"1"}}}`, `/spec/hard/pods = "2"`, false},
	"Service":                 {"v1", `{"spec":{"type":"ClusterIP"}}`, `/spec/type = "NodePort"`, false},
	"ServiceAccount":          {"v1", `{"automountServiceAccountToken":false}`, `/automountServiceAccountToken = true`, false},
	"ControllerRevision":      {"apps/v1", `{"revision":1,"data":{"a":1}}`, `/revision = 2`, false},
	"DaemonSet":               {"apps/v1", `{"spec":{"template":` + podTemplate + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
	"Deployment":              {"apps/v1", `{"spec":{"template":` + podTemplate + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
	"ReplicaSet":              {"apps/v1", `{"spec":{"template":` + podTemplate + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
	"StatefulSet":             {"apps/v1", `{"spec":{"template":` + podTemplate + `}}`, `/spec/template/spec/containers/[name=app]/image = "a:2"`, true},
	"HorizontalPodAutoscaler": {"autoscaling/v2", `{"spec":{"maxReplicas":3}}`, `/spec/maxReplicas = 4`, false},
	"CronJob":                 {"batch/v1", `{"spec":{"schedule":"0 0 * * *"}}`, `/spec/schedule = "1 0 * * *"`, true},
	"Job":                     {"batch/v1", `{"spec":{"suspend":true}}`, `/spec/suspend = false`, true},
	"PodDisruptionBudget":     {"policy/v1", `{"spec":{"minAvailable":1}}`, `/spec/minAvailable = 2`, true},
	"Ingress":                 {"networking.k8s.io/v1", `{"spec":{"ingressClassName":"a"}}`, `/spec/ingressClassName = "b"`, true},
	"NetworkPolicy":           {"networking.k8s.io/v1", `{"spec":{"policyTypes":["Ingress"]}}`, `/spec/policyTypes = ["Egress"]`, true},
	"Role":                    {"rbac.authorization.k8s.io/v1", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, `/rules = [{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}]`, false},
	"RoleBinding":             {"rbac.authorization.k8s.io/v1", `{"subjects":[{"kind":"User","name":"a"}],"roleRef":{"kind":"Role","name":"r"}}`, `/subjects = [{"kind":"User","name":"b"}]`, false},
	"ResourceClaim":           {"resource.k8s.io/v1", `{"spec":{"devices":{"requests":[{"name":"a"}]}}}`, `/spec/devices/requests = [{"name":"b"}]`, false},
	"ResourceClaimTemplate":   {"resource.k8s.io/v1", `{"spec":{"spec":{"a":1}}}`, `/spec/spec/a = 2`, false},
	"PodGroup":                {"scheduling.k8s.io/v1alpha2", `{"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}`, `/spec/schedulingPolicy/gang/minCount = 3`, false},
	"Workload":                {"scheduling.k8s.io/v1alpha2", `{"spec":{"podGroupTemplates":[{"name":"a"}]}}`, `/spec/podGroupTemplates = [{"name":"b"}]`, false},
	"Widget":                  {"example.org/v1", `{"spec":{"size":"a"}}`, `/spec/size = "b"`, true},
	"Flat":                    {"example.org/v1", `{"values":{"size":"a"},"enabled":true}`, `/values/size = "b"`, true},
}

// H3 of the guard's review: a second write had no proof where the content of a kind is
// not under spec.
func TestTwoWritesInARowByATrustedWriterAreInSyncForEachKind(t *testing.T) {
	for kind, tc := range writesOfKinds {
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
			if w.state.Drift != v1alpha1.StateInSync || w.state.Authorized.Number != 2 {
				t.Error(w.report())
			}
		})
	}
}

// kindsOfARule finds the kinds that one rule of the definition of guards allows.
var kindsOfARule = regexp.MustCompile(`self\.kind (?:in \[([^\]]*)\]|== ('\w+'))`)

func TestEachKindThatAGuardMayNameIsTested(t *testing.T) {
	raw, err := os.ReadFile("../../charts/plumbline/files/crds/plumbline.dev_specguards.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &definition); err != nil {
		t.Fatal(err)
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	var want []string
	for _, rule := range spec.Properties["resources"].Items.Schema.XValidations {
		for _, match := range kindsOfARule.FindAllStringSubmatch(rule.Rule, -1) {
			for kind := range strings.SplitSeq(match[1]+match[2], ",") {
				want = append(want, strings.Trim(kind, " '"))
			}
		}
	}
	want = slices.DeleteFunc(want, func(kind string) bool { return kind == "Secret" }) // another rule refuses those
	slices.Sort(want)
	var have []string
	for kind, writes := range writesOfKinds {
		if !strings.HasPrefix(writes.apiVersion, "example.org/") {
			have = append(have, kind)
		}
	}
	slices.Sort(have)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the kinds that a guard may name, and those of this test (-guard +test):\n%s", diff)
	}
}
