// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// cluster has one namespace, as far as it was heard of and as it is.
type cluster struct {
	known, real map[string]string
	err         error
	asked       int
}

func (c *cluster) Known(string) map[string]string { return c.known }

func (c *cluster) Ask(ctx context.Context, _ string) (map[string]string, error) {
	c.asked++
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("the question is not bounded")
	}
	return c.real, c.err
}

func installation() inject.Config {
	return inject.Config{
		ProxyImage: "docker.io/example/envoy:1", RedirectImage: "docker.io/example/redirect:1",
		Bootstrap: inject.BootstrapConfig{XDSHost: "plumbline-xds.plumbline-system.svc", XDSPort: 15010},
	}
}

func newInjector(c *cluster, log *bytes.Buffer) *Injector {
	return &Injector{Config: installation(), Namespaces: c, Metrics: NewMetrics(), Log: slog.New(slog.NewTextHandler(log, nil))}
}

// podOf is a pod as the API server sends it: without its namespace and name.
func podOf(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "web-7d4-", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7d4"}}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "x"}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func reviewOf(t testing.TB, pod *corev1.Pod) *admission.Review {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return &admission.Review{
		UID: "r-1", Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: admission.Resource{Version: "v1", Resource: "pods"},
		Namespace: "shop", Operation: admissionv1.Create, Object: raw,
	}
}

var (
	silent  = map[string]string{"kubernetes.io/metadata.name": "shop"}
	enabled = map[string]string{inject.LabelInject: inject.Enabled}
)

func asking(p *corev1.Pod) { p.Labels = map[string]string{inject.LabelInject: inject.Enabled} }

func TestWhatBecomesOfAPod(t *testing.T) {
	onTheNode := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	tests := map[string]struct {
		cluster cluster
		pod     *corev1.Pod
		verdict admission.Verdict
		reason  admission.Reason
		asked   int
		warned  string
	}{
		"its namespace asks":                           {cluster: cluster{known: enabled}, pod: podOf(), verdict: VerdictInjected},
		"it asks":                                      {cluster: cluster{known: silent}, pod: podOf(asking), verdict: VerdictInjected},
		"its namespace is new":                         {cluster: cluster{real: enabled}, pod: podOf(), verdict: VerdictInjected, asked: 1},
		"it asks in a new namespace":                   {cluster: cluster{real: silent}, pod: podOf(asking), verdict: VerdictInjected, asked: 1},
		"its namespace was labeled a moment ago":       {cluster: cluster{known: silent, real: enabled}, pod: podOf(), verdict: VerdictInjected, asked: 1},
		"its namespace took another mode a moment ago": {cluster: cluster{known: map[string]string{inject.LabelInject: inject.Enabled, inject.LabelMode: "no"}, real: enabled}, pod: podOf(), verdict: VerdictInjected, asked: 1},
		"nobody asks any more":                         {cluster: cluster{known: silent, real: silent}, pod: podOf(), verdict: VerdictLeft, asked: 1},
		"it cannot have one":                           {cluster: cluster{known: enabled, real: enabled}, pod: podOf(onTheNode), verdict: VerdictRefused, asked: 1, warned: "(HostNetwork): "},
		"its namespace cannot be read": {
			cluster: cluster{err: errors.New("gone")}, pod: podOf(asking), verdict: admission.VerdictUnassessed, reason: admission.ReasonNamespace, asked: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			i := newInjector(&tc.cluster, &log)
			got := i.Review(t.Context(), reviewOf(t, tc.pod))
			if got.Verdict != tc.verdict || got.Reason != tc.reason || tc.cluster.asked != tc.asked {
				t.Fatalf("verdict %s, reason %q, asked %d times (%v)", got.Verdict, got.Reason, tc.cluster.asked, got.Err)
			}
			if (got.Patch != nil) != (tc.verdict == VerdictInjected) {
				t.Errorf("patch %s", got.Patch)
			}
			if (len(got.Warnings) == 1) != (tc.warned != "") || !strings.Contains(strings.Join(got.Warnings, ""), tc.warned) {
				t.Errorf("warnings %q", got.Warnings)
			}
			if refused := tc.verdict == VerdictRefused; refused != strings.Contains(log.String(), "owner=ReplicaSet/web-7d4") {
				t.Errorf("log %q", &log)
			}
		})
	}
}

func TestThePatchIsThatOfPackageInject(t *testing.T) {
	pod := podOf(asking)
	got := newInjector(&cluster{known: silent}, &bytes.Buffer{}).Review(t.Context(), reviewOf(t, pod))
	want, err := inject.Patch(pod, installation(), inject.Explicit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got.Patch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAPodThatComesAgain after another webhook has changed it.
func TestAPodThatComesAgain(t *testing.T) {
	pod, err := inject.Pod(podOf(asking), installation(), inject.Explicit)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{known: silent}
	i := newInjector(c, &bytes.Buffer{})
	if got := i.Review(t.Context(), reviewOf(t, pod)); got.Verdict != VerdictLeft || got.Patch != nil || c.asked != 0 {
		t.Errorf("%+v, asked %d times", got, c.asked)
	}
	pod.Spec.Containers[0].Resources.Limits = pod.Spec.InitContainers[0].Resources.Limits
	got := i.Review(t.Context(), reviewOf(t, pod))
	patch, err := jsonpatch.DecodePatch(got.Patch)
	if got.Verdict != VerdictLeft || err != nil || len(patch) != 1 {
		t.Errorf("%+v: %v", got, err)
	}
}

func TestWhatIsNoPodThatIsCreatedIsLeft(t *testing.T) {
	for name, change := range map[string]func(*admission.Review){
		"an update":             func(r *admission.Review) { r.Operation = admissionv1.Update },
		"a deletion":            func(r *admission.Review) { r.Operation, r.Object = admissionv1.Delete, nil },
		"an unknown operation":  func(r *admission.Review) { r.Operation = "PATCH" },
		"ephemeral containers":  func(r *admission.Review) { r.SubResource = "ephemeralcontainers" },
		"a binding":             func(r *admission.Review) { r.SubResource = "binding" },
		"another kind":          func(r *admission.Review) { r.Kind.Kind = "PodTemplate" },
		"another group's pod":   func(r *admission.Review) { r.Kind.Group = "example.com" },
		"an unknown version":    func(r *admission.Review) { r.Kind.Version = "v2" },
		"a pod of nobody's own": func(r *admission.Review) { r.Kind = schema.GroupVersionKind{} },
	} {
		c := &cluster{known: enabled}
		i := newInjector(c, &bytes.Buffer{})
		r := reviewOf(t, podOf(asking))
		change(r)
		if got := i.Review(t.Context(), r); got.Verdict != VerdictLeft || got.Patch != nil || testutil.CollectAndCount(i.Metrics) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatCannotBeReadIsNotLeft(t *testing.T) {
	for name, object := range map[string]string{
		"nothing": "", "a list": "[]", "a pod of another shape": `{"spec":{"containers":{}}}`, "half a pod": `{"spec":`,
	} {
		r := reviewOf(t, podOf())
		r.Object = []byte(object)
		if got := newInjector(&cluster{known: enabled}, &bytes.Buffer{}).Review(t.Context(), r); got.Verdict != admission.VerdictUnassessed || got.Reason != admission.ReasonObject {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAWarningIsShortWhateverItQuotes(t *testing.T) {
	pod := podOf(asking, func(p *corev1.Pod) {
		p.Annotations = map[string]string{inject.AnnotationCPU: strings.Repeat("ä\n", 100_000)}
	})
	var log bytes.Buffer
	got := newInjector(&cluster{known: silent, real: silent}, &log).Review(t.Context(), reviewOf(t, pod))
	if len(got.Warnings) != 1 || len(got.Warnings[0]) > maxMessageBytes || strings.ContainsAny(got.Warnings[0], "\n\uFFFD") {
		t.Errorf("warnings %q", got.Warnings)
	}
	if log.Len() > 2048 {
		t.Errorf("%d bytes of log", log.Len())
	}
}

func TestPodsAreCountedByOutcomeAndReason(t *testing.T) {
	i := newInjector(&cluster{known: enabled, real: enabled}, &bytes.Buffer{})
	i.Review(t.Context(), reviewOf(t, podOf()))
	i.Review(t.Context(), reviewOf(t, podOf(func(p *corev1.Pod) { p.Spec.HostNetwork = true })))
	want := `
# HELP plumbline_injection_pods_total Pods for which a proxy was decided on, by outcome (Inject, Leave, Refuse) and reason; dry runs and repeated calls for one pod count too.
# TYPE plumbline_injection_pods_total counter
plumbline_injection_pods_total{outcome="Inject",reason="Asked"} 1
plumbline_injection_pods_total{outcome="Refuse",reason="HostNetwork"} 1
`
	if err := testutil.CollectAndCompare(i.Metrics, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(i.Metrics); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
