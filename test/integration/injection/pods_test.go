// SPDX-License-Identifier: Apache-2.0

//go:build integration

package injection

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// bare is a pod without a controller, whose name the API server makes.
func bare(namespace string, changes ...func(*corev1.Pod)) *corev1.Pod {
	template := plain(corev1.RestartPolicyAlways)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "web-", Labels: map[string]string{}}, Spec: template.Spec}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func saying(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[inject.LabelInject] = value }
}

func create(t *testing.T, pod *corev1.Pod, options ...client.CreateOption) *corev1.Pod {
	t.Helper()
	if err := admin.Create(t.Context(), pod, options...); err != nil {
		t.Fatal(err)
	}
	return pod
}

var optedIn = map[string]string{inject.LabelInject: inject.Enabled}

func TestWhoAsksGetsAProxyAndNobodyElse(t *testing.T) {
	tests := map[string]struct {
		namespace map[string]string
		pod       []func(*corev1.Pod)
		want      inject.Mode // empty: no proxy
	}{
		"nobody asks":        {},
		"the namespace asks": {namespace: optedIn, want: inject.Explicit},
		"the pod asks":       {pod: []func(*corev1.Pod){saying(inject.Enabled)}, want: inject.Explicit},
		"both ask":           {namespace: optedIn, pod: []func(*corev1.Pod){saying(inject.Enabled)}, want: inject.Explicit},
		"the pod does not want what its namespace asks for": {namespace: optedIn, pod: []func(*corev1.Pod){saying(inject.Disabled)}},
		"the pod asks in a namespace that does not want": {
			namespace: map[string]string{inject.LabelInject: inject.Disabled}, pod: []func(*corev1.Pod){saying(inject.Enabled)}, want: inject.Explicit,
		},
		"the pod asks for another mode than its namespace": {
			namespace: map[string]string{inject.LabelInject: inject.Enabled, inject.LabelMode: "explicit"},
			pod:       []func(*corev1.Pod){func(p *corev1.Pod) { p.Labels[inject.LabelMode] = "redirect" }}, want: inject.Redirect,
		},
		"a pod with a name": {namespace: optedIn, pod: []func(*corev1.Pod){func(p *corev1.Pod) { p.Name = "web" }}, want: inject.Explicit},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := create(t, bare(namespace(t, tc.namespace), tc.pod...))
			if tc.want == "" {
				mustHaveNoProxy(t, pod)
				return
			}
			mustHaveProxy(t, pod, tc.want)
		})
	}
}

// warnings are what a client was told.
type warnings struct {
	mu   sync.Mutex
	said []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// told is what the writer of a pod is told; the pod is created.
func told(t *testing.T, pod *corev1.Pod) (created *corev1.Pod, text string) {
	t.Helper()
	w := &warnings{}
	listening := rest.CopyConfig(config)
	listening.WarningHandler = w
	client, err := kubernetes.NewForConfig(listening)
	if err != nil {
		t.Fatal(err)
	}
	created, err = client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created, strings.Join(w.said, "\n")
}

func TestAPodThatCannotHaveAProxyIsCreatedAndItsWriterTold(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Pod)
		reason inject.Reason
		text   string
	}{
		"in the network of its node": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, inject.HostNetwork, "network of its node"},
		"a mode that there is not":   {func(p *corev1.Pod) { p.Labels[inject.LabelMode] = "tproxy" }, inject.WrongValue, `"tproxy"`},
		"another word than enabled":  {saying("true"), inject.WrongValue, `"true"`},
		"a port that is the proxy's": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: inject.StatusPort}}
		}, inject.PortTaken, "15021"},
		"a proxy of Istio, whose webhook was called before": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "istio-proxy", Image: "x"})
		}, inject.OtherMesh, "Istio"},
		"an annotation without sense, at length": {
			func(p *corev1.Pod) {
				p.Annotations = map[string]string{inject.AnnotationCPU: strings.Repeat("a lot ", 10_000)}
			}, inject.WrongValue, inject.AnnotationCPU,
		},
	}
	ns := namespace(t, optedIn)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			label := `reason="` + string(tc.reason) + `"`
			before := hook.pods(t, `outcome="Refuse"`, label)
			pod, text := told(t, bare(ns, tc.change))
			mustHaveNoProxy(t, pod)
			if !strings.HasPrefix(text, "plumbline: the pod gets no proxy ("+string(tc.reason)+"): ") || !strings.Contains(text, tc.text) {
				t.Errorf("told %q", text)
			}
			if n := hook.pods(t, `outcome="Refuse"`, label) - before; n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
}

// TestAWrongWordOfAPodIsToldEverywhere because a pod whose word nobody reads would
// silently have no proxy.
func TestAWrongWordOfAPodIsToldEverywhere(t *testing.T) {
	_, text := told(t, bare(namespace(t, nil), saying("yes")))
	if !strings.Contains(text, `"yes", not enabled or disabled`) {
		t.Errorf("told %q", text)
	}
}

func TestADryRunShowsTheProxyAndStoresNothing(t *testing.T) {
	ns := namespace(t, optedIn)
	mustHaveProxy(t, create(t, bare(ns), client.DryRunAll), inject.Explicit)
	var pods corev1.PodList
	if err := admin.List(t.Context(), &pods, client.InNamespace(ns)); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods (%v)", len(pods.Items), err)
	}
}

// TestTheFirstPodOfANewNamespaceGetsAProxy which the webhook's cache does not know yet.
func TestTheFirstPodOfANewNamespaceGetsAProxy(t *testing.T) {
	for range 10 {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "new-", Labels: optedIn}}
		if err := admin.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		// The account is looked for in the API server's cache first, then in etcd.
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "default"}}
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), account)); err != nil {
			t.Fatal(err)
		}
		mustHaveProxy(t, create(t, bare(ns.Name), client.DryRunAll), inject.Explicit)
	}
}

// TestALabelThatTheAPIServerKnowsIsNeverMissed: between the label and the first call
// nobody calls; from then on there is no call without a proxy.
func TestALabelThatTheAPIServerKnowsIsNeverMissed(t *testing.T) {
	left := hook.pods(t, `reason="NotAsked"`)
	for range 5 {
		name := namespace(t, nil)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := admin.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"plumbline.dev/inject":"enabled"}}}`))); err != nil {
			t.Fatal(err)
		}
		poll.True(t, patience, "the API server knows the label", func() bool {
			return create(t, bare(name), client.DryRunAll).Labels[inject.LabelProxy] != ""
		})
	}
	if n := hook.pods(t, `reason="NotAsked"`) - left; n != 0 {
		t.Errorf("%v pods were left that had asked", n)
	}
}

// TestWithoutAWebhookOnlyWhoAskedWaits: pods that asked are refused, with the reason;
// all others are created, first of all those that the webhook needs to come back.
func TestWithoutAWebhookOnlyWhoAskedWaits(t *testing.T) {
	asked, silent := namespace(t, optedIn), namespace(t, nil)
	for _, own := range []string{rendered.Namespace, metav1.NamespaceSystem} {
		label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"plumbline.dev/inject":"enabled"}}}`))
		if err := admin.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}}, label); err != nil {
			t.Fatal(err)
		}
		awaitAccount(t, own)
	}
	if err := hook.process.Stop(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hook.start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		mustHaveProxy(t, create(t, bare(asked)), inject.Explicit)
	}()
	for name, pod := range map[string]*corev1.Pod{
		"whose namespace asked":              bare(asked),
		"that asked":                         bare(silent, saying(inject.Enabled)),
		"that asked, as its namespace":       bare(asked, saying(inject.Enabled)),
		"with a name, whose namespace asked": bare(asked, func(p *corev1.Pod) { p.Name = "web" }),
	} {
		err := admin.Create(t.Context(), pod, client.DryRunAll)
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "inject.plumbline.dev") {
			t.Errorf("a pod %s: %v", name, err)
		}
	}
	for name, pod := range map[string]*corev1.Pod{
		"that did not ask":            bare(silent),
		"that opted out":              bare(asked, saying(inject.Disabled)),
		"of Plumbline":                bare(rendered.Namespace, saying(inject.Enabled)),
		"of the control plane":        bare(metav1.NamespaceSystem, saying(inject.Enabled)),
		"of Plumbline, by its labels": bare(rendered.Namespace),
	} {
		if err := admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("a pod %s: %v", name, err)
		}
	}
}
