// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	review "github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject/admission"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

func injection(t *testing.T, objects []*unstructured.Unstructured) []admissionv1.MutatingWebhook {
	t.Helper()
	return convert[admissionv1.MutatingWebhookConfiguration](t, find(t, objects, "MutatingWebhookConfiguration", "plumbline-inject")).Webhooks
}

func TestTheWebhooksOfTheInjection(t *testing.T) {
	webhooks := injection(t, template(t, "--set", withMesh))
	if len(webhooks) != 2 {
		t.Fatalf("%d webhooks", len(webhooks))
	}
	for _, got := range webhooks {
		want := admissionv1.MutatingWebhook{
			Name: got.Name,
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: "plumbline-system", Name: "plumbline-webhook", Path: new(review.InjectPath), Port: new(int32(443))}},
			SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(admissionv1.Fail), MatchPolicy: new(admissionv1.Equivalent),
			ReinvocationPolicy: new(admissionv1.IfNeededReinvocationPolicy), TimeoutSeconds: new(int32(5)),
			NamespaceSelector: got.NamespaceSelector, ObjectSelector: got.ObjectSelector,
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: new(admissionv1.NamespacedScope)},
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// TestOnlyPodsThatAskAreSent because, while the webhook is away, a pod that would be
// sent cannot be created: each once, and none that the cluster or Plumbline needs.
func TestOnlyPodsThatAskAreSent(t *testing.T) {
	words := []string{"", inject.Enabled, inject.Disabled, "true"} // empty: no label
	labeled := func(word string) labels.Set {
		if word == "" {
			return labels.Set{}
		}
		return labels.Set{inject.LabelInject: word}
	}
	for own, args := range map[string][]string{"plumbline-system": nil, "elsewhere": {"--namespace", "elsewhere"}} {
		webhooks := injection(t, template(t, append(args, "--set", withMesh)...))
		for _, namespace := range []string{"shop", own, "kube-system", "kube-node-lease", "kube-public"} {
			for _, ofNamespace := range words {
				for _, ofPod := range words {
					in := labeled(ofNamespace)
					in[corev1.LabelMetadataName] = namespace
					sent := 0
					for i := range webhooks {
						if selects(t, webhooks[i].NamespaceSelector, in) && selects(t, webhooks[i].ObjectSelector, labeled(ofPod)) {
							sent++
						}
					}
					want := 0
					// Of a wrong word the pod's writer is told.
					if asks := ofPod == inject.Enabled || ofPod == "true" || ofPod == "" && ofNamespace == inject.Enabled; asks && namespace == "shop" {
						want = 1
					}
					if sent != want {
						t.Errorf("a pod with %q in %s with %q is sent %d times, want %d", ofPod, namespace, ofNamespace, sent, want)
					}
				}
			}
		}
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, set labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(set)
}

// proxies is what the webhook of a rendered chart reads.
func proxies(t *testing.T, objects []*unstructured.Unstructured) inject.Config {
	t.Helper()
	raw := convert[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "plumbline-inject")).Data["inject.yaml"]
	c, err := admission.ParseConfig([]byte(raw))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, raw)
	}
	return c
}

// TestTheChartsProxyIsThatOfPackageInject: what values.yaml says is what would be
// without it, so that there is one truth about defaults.
func TestTheChartsProxyIsThatOfPackageInject(t *testing.T) {
	c := proxies(t, template(t, "--set", withMesh))
	bare := inject.Config{ProxyImage: c.ProxyImage, RedirectImage: c.RedirectImage, PullPolicy: c.PullPolicy, Bootstrap: c.Bootstrap}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{inject.LabelInject: inject.Enabled}}}
	said, unsaid := inject.Decide(pod, nil, c), inject.Decide(pod, nil, bare)
	if diff := cmp.Diff(unsaid, said); diff != "" {
		t.Errorf("decision (-default +chart):\n%s", diff)
	}
	want, err := inject.Pod(pod, bare, unsaid.Mode)
	if err != nil {
		t.Fatal(err)
	}
	got, err := inject.Pod(pod, c, said.Mode)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod (-default +chart):\n%s", diff)
	}
}

func TestTheProxyIsAsTheValuesSay(t *testing.T) {
	objects := template(t, "--values", valuesFiles(t)["full"])
	c := proxies(t, objects)
	digest := "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	want := inject.Config{
		ProxyImage: "other.example.com/envoy" + digest, RedirectImage: "other.example.com/redirect" + digest, PullPolicy: corev1.PullAlways,
		Mode: inject.Redirect, UID: 4711, Concurrency: 4, TokenLifetime: 30 * time.Minute, Resources: c.Resources,
		Bootstrap: inject.BootstrapConfig{XDSHost: "plumbline-xds.plumbline-system.svc", XDSPort: 15010, IPv6: true},
	}
	if diff := cmp.Diff(want, c); diff != "" || c.Resources.Limits.Cpu().String() != "2" {
		t.Errorf("resources %v (-want +got):\n%s", c.Resources, diff)
	}
}

func TestProxiesAreToldOfTheServiceThatThereIs(t *testing.T) {
	for own, args := range map[string][]string{"plumbline-system": nil, "elsewhere": {"--namespace", "elsewhere"}} {
		objects := template(t, append(args, "--set", withMesh)...)
		service := convert[corev1.Service](t, find(t, objects, "Service", "plumbline-xds"))
		b := proxies(t, objects).Bootstrap
		if b.XDSHost != service.Name+"."+own+".svc" || b.XDSPort != uint32(service.Spec.Ports[0].Port) { //nolint:gosec // a port
			t.Errorf("%s:%d, of Service %s", b.XDSHost, b.XDSPort, service.Name)
		}
	}
}

func TestAnotherProxyRestartsTheWebhook(t *testing.T) {
	checksum := func(args ...string) string {
		d := convert[appsv1.Deployment](t, find(t, template(t, append(args, "--set", withMesh)...), "Deployment", "plumbline-webhook"))
		return d.Spec.Template.Annotations["checksum/inject"]
	}
	if a, b := checksum(), checksum("--set", "mesh.inject.concurrency=3"); a == "" || a == b {
		t.Errorf("checksums %q and %q", a, b)
	}
}

func TestWithoutAMeshNoPodIsSent(t *testing.T) {
	for _, object := range template(t) {
		if object.GetName() == "plumbline-inject" {
			t.Errorf("there is %s", rendered.ID(object))
		}
	}
}
