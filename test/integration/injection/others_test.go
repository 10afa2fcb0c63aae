// SPDX-License-Identifier: Apache-2.0

//go:build integration

package injection

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// othersLabel on a pod is what the others are to do with it.
const othersLabel = "test.example.com/others"

// others is a mutating webhook of somebody else, which the API server calls after
// ours: it calls them in the order of their names.
func others(t *testing.T, patches map[string]string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		var pod metav1.PartialObjectMetadata
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, Patch: []byte(patches[pod.Labels[othersLabel]]), PatchType: new(admissionv1.PatchTypeJSONPatch),
		}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	registered := &arv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-others"},
		Webhooks: []arv1.MutatingWebhook{{
			Name: "others.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(arv1.SideEffectClassNone), FailurePolicy: new(arv1.Fail),
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: othersLabel, Operator: metav1.LabelSelectorOpExists}}},
			ClientConfig: arv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []arv1.RuleWithOperations{{
				Operations: []arv1.OperationType{arv1.Create},
				Rule:       arv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	if err := admin.Create(t.Context(), registered); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), registered); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatOthersChangeAfterwardsCountsForTheProxyToo: it is asked for again, gets one
// proxy all the same, and the pod keeps the class of service that it would have had.
func TestWhatOthersChangeAfterwardsCountsForTheProxyToo(t *testing.T) {
	const limits = `{"limits":{"cpu":"1","memory":"256Mi"}}`
	others(t, map[string]string{
		"container": `[{"op":"add","path":"/spec/containers/-","value":{"name":"added","image":"x"}}]`,
		"limits":    `[{"op":"add","path":"/spec/containers/0/resources","value":` + limits + `}]`,
		"first":     `[{"op":"add","path":"/spec/initContainers/0","value":{"name":"added","image":"x"}}]`,
	})
	guaranteed := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}}
	for name, tc := range map[string]struct {
		app     corev1.ResourceRequirements
		class   corev1.PodQOSClass
		request string
		names   []string // of all containers
	}{
		"container": {guaranteed, corev1.PodQOSBurstable, "50m", []string{inject.ProxyContainer, "app", "added"}},
		"limits":    {corev1.ResourceRequirements{}, corev1.PodQOSGuaranteed, "1", []string{inject.ProxyContainer, "app"}},
		"first":     {guaranteed, corev1.PodQOSBurstable, "50m", []string{"added", inject.ProxyContainer, "app"}},
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t, optedIn)
			made := func() *corev1.Pod {
				return bare(ns, func(p *corev1.Pod) { p.Labels[othersLabel], p.Spec.Containers[0].Resources = name, tc.app })
			}
			poll.True(t, patience, "the API server calls the others", func() bool {
				pod := create(t, made(), client.DryRunAll)
				return len(namesOf(pod)) == len(tc.names) && (name != "limits" || len(pod.Spec.Containers[0].Resources.Limits) > 0)
			})
			again := hook.pods(t, `reason="AlreadyInjected"`)
			pod := create(t, made())
			if got := namesOf(pod); !slices.Equal(got, tc.names) {
				t.Fatalf("containers %q, want %q", got, tc.names)
			}
			proxy := pod.Spec.InitContainers[slices.Index(tc.names, inject.ProxyContainer)]
			if got := proxy.Resources.Requests.Cpu().String(); got != tc.request || pod.Status.QOSClass != tc.class {
				t.Errorf("the proxy requests %s, class %s; want %s, %s", got, pod.Status.QOSClass, tc.request, tc.class)
			}
			if n := hook.pods(t, `reason="AlreadyInjected"`) - again; n != 1 {
				t.Errorf("it was asked for again %v times", n)
			}
		})
	}
}

// Istio's webhook has a name before that of ours, unless its installation says otherwise.
func TestAProxyOfIstioThatComesAfterwardsIsTold(t *testing.T) {
	others(t, map[string]string{"istio": `[{"op":"add","path":"/spec/containers/-","value":{"name":"istio-proxy","image":"x"}}]`})
	ns := namespace(t, optedIn)
	made := func() *corev1.Pod {
		return bare(ns, func(p *corev1.Pod) { p.Labels[othersLabel] = "istio" })
	}
	poll.True(t, patience, "the API server calls Istio", func() bool { return len(namesOf(create(t, made(), client.DryRunAll))) == 3 })
	pod, text := told(t, made())
	if got := namesOf(pod); !slices.Equal(got, []string{inject.ProxyContainer, "app", "istio-proxy"}) {
		t.Errorf("containers %q", got)
	}
	if !strings.Contains(text, string(inject.OtherMesh)) || !strings.Contains(text, "one of the two does not start") {
		t.Errorf("told %q", text)
	}
}

func namesOf(pod *corev1.Pod) (names []string) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			names = append(names, containers[i].Name)
		}
	}
	return names
}
