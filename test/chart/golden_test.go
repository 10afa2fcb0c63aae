// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// random is what differs between two renders: the generated keys, the ACL
// with its hash, and the checksum of both.
var random = regexp.MustCompile(`(?m)^(\s+(?:password|digest\.key|key\.pem|users\.acl|plumbline\.dev/redis-checksum): )\S+$`)

// TestGoldenManifests has the manifest of the default values whole, and of all others
// what differs from it.
func TestGoldenManifests(t *testing.T) {
	manifest := func(t *testing.T, name, path string) string {
		return random.ReplaceAllString(render(t, name != "small", "--values", path).text, "${1}<random>")
	}
	files, directory := valuesFiles(t), filepath.Join("testdata", "golden")
	golden.Check(t, filepath.Join(directory, "default.yaml"), manifest(t, "default", files["default"]))
	delete(files, "default")
	for name, path := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden.CheckDifference(t, "default.yaml", filepath.Join(directory, name+".diff"), manifest(t, name, path))
		})
	}
}

func TestTwoRendersForGitOpsAreEqual(t *testing.T) {
	values := valuesFiles(t)["gitops"]
	first := render(t, true, "--values", values)
	second := renderNow(t, true, "--values", values)
	if diff := cmp.Diff(first.text, second.text); diff != "" || second.err != nil {
		t.Errorf("%v (-first +second):\n%s", second.err, diff)
	}
}

func TestEveryFieldOfEveryObjectExists(t *testing.T) {
	strict := map[string]func(*unstructured.Unstructured) error{
		"Deployment":                       check[appsv1.Deployment],
		"Service":                          check[corev1.Service],
		"ServiceAccount":                   check[corev1.ServiceAccount],
		"Secret":                           check[corev1.Secret],
		"ConfigMap":                        check[corev1.ConfigMap],
		"PersistentVolumeClaim":            check[corev1.PersistentVolumeClaim],
		"Namespace":                        check[corev1.Namespace],
		"Pod":                              check[corev1.Pod],
		"Lease":                            check[coordinationv1.Lease],
		"PodDisruptionBudget":              check[policyv1.PodDisruptionBudget],
		"NetworkPolicy":                    check[networkingv1.NetworkPolicy],
		"Role":                             check[rbacv1.Role],
		"RoleBinding":                      check[rbacv1.RoleBinding],
		"ClusterRole":                      check[rbacv1.ClusterRole],
		"ClusterRoleBinding":               check[rbacv1.ClusterRoleBinding],
		"MutatingWebhookConfiguration":     check[admissionv1.MutatingWebhookConfiguration],
		"ValidatingWebhookConfiguration":   check[admissionv1.ValidatingWebhookConfiguration],
		"MutatingAdmissionPolicy":          check[admissionv1.MutatingAdmissionPolicy],
		"MutatingAdmissionPolicyBinding":   check[admissionv1.MutatingAdmissionPolicyBinding],
		"ValidatingAdmissionPolicy":        check[admissionv1.ValidatingAdmissionPolicy],
		"ValidatingAdmissionPolicyBinding": check[admissionv1.ValidatingAdmissionPolicyBinding],
		"SpecGuard":                        check[v1alpha1.SpecGuard],
		"RolloutStrategy":                  check[v1alpha1.RolloutStrategy],
		"Certificate":                      check[certificate],
		"PrometheusRule":                   check[prometheusRule],
		"PodMonitor":                       check[podMonitor],
		"ServiceMonitor":                   check[serviceMonitor],
	}
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for _, object := range objects {
			convert, known := strict[object.GetKind()]
			if !known {
				t.Errorf("%s: the test knows no type of this kind", rendered.ID(object))
				continue
			}
			if err := convert(object); err != nil {
				t.Error(err)
			}
		}
	})
}

func check[T any](object *unstructured.Unstructured) error {
	_, err := rendered.Convert[T](object)
	return err
}

func TestEveryObjectIsLabeledAlike(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for _, object := range objects {
			labels := object.GetLabels()
			want := map[string]string{
				"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/instance": rendered.Release, "app.kubernetes.io/part-of": "plumbline",
				"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "0.1.0", "helm.sh/chart": "plumbline-0.1.0",
			}
			for key, value := range want {
				if labels[key] != value {
					t.Errorf("%s: label %s is %q, want %q", rendered.ID(object), key, labels[key], value)
				}
			}
			if labels["app.kubernetes.io/component"] == "" {
				t.Errorf("%s has no component", rendered.ID(object))
			}
			// People name a strategy, and the published design gives these names.
			if object.GetKind() != "RolloutStrategy" && !strings.HasPrefix(object.GetName(), "plumbline") {
				t.Errorf("%s: the name does not begin with plumbline", rendered.ID(object))
			}
		}
	})
}

func TestCommonLabelsReachEveryObject(t *testing.T) {
	for _, object := range template(t, "--set", "commonLabels.team=platform") {
		if object.GetKind() != "CustomResourceDefinition" && object.GetLabels()["team"] != "platform" {
			t.Errorf("%s does not carry it", rendered.ID(object))
		}
	}
}

func TestSelectorsMeetTheirPodsAndNoOther(t *testing.T) {
	forEachValuesFile(t, func(t *testing.T, objects []*unstructured.Unstructured) {
		for _, object := range rendered.OfKind(objects, "Deployment") {
			d := convert[appsv1.Deployment](t, object)
			for key, value := range d.Spec.Selector.MatchLabels {
				if d.Spec.Template.Labels[key] != value {
					t.Errorf("%s selects %s=%s, which its pods do not carry", d.Name, key, value)
				}
			}
			for _, unstable := range []string{"app.kubernetes.io/version", "helm.sh/chart", "team"} {
				if _, ok := d.Spec.Selector.MatchLabels[unstable]; ok {
					t.Errorf("%s selects by %s, which an upgrade changes", d.Name, unstable)
				}
			}
		}
		for _, object := range rendered.OfKind(objects, "Service") {
			s := convert[corev1.Service](t, object)
			if s.Name == "plumbline-metrics" {
				continue // for all pods: TestTheServiceMonitorFindsExactlyThePodsWithMetrics
			}
			d := convert[appsv1.Deployment](t, find(t, objects, "Deployment", s.Name))
			if diff := cmp.Diff(d.Spec.Selector.MatchLabels, s.Spec.Selector); diff != "" {
				t.Errorf("Service %s selects other pods than its Deployment (-deployment +service):\n%s", s.Name, diff)
			}
			for _, port := range s.Spec.Ports {
				named := func(p corev1.ContainerPort) bool { return p.Name == port.TargetPort.StrVal }
				if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, named) {
					t.Errorf("Service %s: no container port is named %s", s.Name, port.TargetPort.StrVal)
				}
			}
		}
	})
}

func TestTheKindsAreThoseOfTheFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(rendered.ChartDir(), "files", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of the kinds: %v, %v", files, err)
	}
	tests := map[string]struct {
		args []string
		want int
		keep string
	}{
		"by default they outlive the release": {nil, len(files), "keep"},
		"kept no longer":                      {[]string{"--set", "crds.keep=false"}, len(files), ""},
		"installed by somebody else":          {[]string{"--set", "crds.enabled=false"}, 0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			crds := rendered.OfKind(template(t, test.args...), "CustomResourceDefinition")
			if len(crds) != test.want {
				t.Fatalf("%d kinds, want %d", len(crds), test.want)
			}
			for _, crd := range crds {
				if got := crd.GetAnnotations()["helm.sh/resource-policy"]; got != test.keep {
					t.Errorf("%s: resource policy %q, want %q", crd.GetName(), got, test.keep)
				}
				if diff := cmp.Diff(specOfFile(t, crd.GetName()), crd.Object["spec"]); diff != "" {
					t.Errorf("%s differs from its file (-file +chart):\n%s", crd.GetName(), diff)
				}
			}
		})
	}
}
