// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// FuzzReview posts any pod: no panic, and whoever asked is injected, refused with a
// warning, or denied; its pod never passes in silence. What is injected applies.
func FuzzReview(f *testing.F) {
	for _, pod := range []*corev1.Pod{
		podOf(), podOf(asking), podOf(asking, func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		podOf(asking, func(p *corev1.Pod) { p.Labels[inject.LabelMode] = "redirect" }),
	} {
		raw, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"metadata":{"labels":null,"annotations":null},"spec":{"volumes":null,"initContainers":null}}`))
	f.Add([]byte(`{"metadata":{"labels":{}},"spec":{"volumes":[{}],"initContainers":[{"name":"plumbline-proxy"}]}}`))
	f.Add([]byte(`{"metadata":{"LABELS":{"plumbline.dev/inject":"disabled"}}}`))
	injector := newInjector(&cluster{known: enabled, real: enabled}, &bytes.Buffer{})
	handler := admission.NewFailClosed("inject", injector.Review, admission.HandlerConfig{Metrics: admission.NewMetrics(), Log: injector.Log, Limits: admission.NewLimits(1)})
	f.Fuzz(func(t *testing.T, object []byte) {
		object, isPod := asSent(t, object)
		body := append(append([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r-1","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","namespace":"shop","object":`), object...), "}}"...)
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK || review.Response == nil {
			t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
		}
		r := review.Response
		switch {
		case !r.Allowed:
			if r.Patch != nil || r.Result == nil || strings.Contains(r.Result.Message, "panic") {
				t.Errorf("answer %s", w.Body)
			}
		case r.Patch != nil && isPod:
			mustApply(t, object, r.Patch)
		case len(r.Warnings) == 0:
			var pod corev1.Pod
			if err := json.Unmarshal(object, &pod); isPod && (err != nil || inject.Decide(&pod, enabled, installation()).Outcome != inject.Leave) {
				t.Errorf("it passed in silence: %s", w.Body)
			}
		}
	})
}

// asSent is a pod as the API server writes it; what is none stays as it is.
func asSent(t *testing.T, object []byte) (sent []byte, isPod bool) {
	t.Helper()
	var pod corev1.Pod
	if kjson.UnmarshalCaseSensitivePreserveInts(object, &pod) != nil {
		return object, false
	}
	sent, err := json.Marshal(pod)
	if err != nil {
		return object, false
	}
	return sent, true
}

func mustApply(t *testing.T, object, patch []byte) {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decoded.Apply(object)
	if err != nil {
		t.Fatalf("the patch does not apply: %v\n%s\n%s", err, object, patch)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(patched, &pod); err != nil {
		t.Fatal(err)
	}
	if d := inject.Decide(&pod, enabled, installation()); d.Reason != inject.AlreadyInjected {
		t.Errorf("the patched pod is %+v", d)
	}
}
