// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/plumbline-dev/plumbline/pkg/admission"
)

// FuzzHandler posts anything: no panic, and what is answered with 200 allows,
// names a uid, and asks for a patch only from /mutate.
func FuzzHandler(f *testing.F) {
	for _, r := range []*admission.Review{
		create(alice, deployment(f)), create(ci, deployment(f, image("\u2028</script>"))),
		update(alice, deployment(f, image("x:2")), deployment(f)), update(hpa, deployment(f, set("spec.replicas", 3)), deployment(f)),
		deletion(ci, deployment(f)), scale(f, hpa, 1, 2),
	} {
		f.Add(envelope(f, r), true)
		f.Add(envelope(f, r), false)
	}
	reviewer, _ := newReviewer(f, nil)
	reviewer.Recorder, reviewer.StampWriter = drop{}, true
	cfg := admission.HandlerConfig{Metrics: admission.NewMetrics(), Log: quiet(), Limits: admission.NewLimits(1)}
	handlers := map[bool]http.Handler{true: admission.NewHandler("mutate", reviewer.Mutate, cfg), false: admission.NewHandler("validate", reviewer.Validate, cfg)}
	f.Fuzz(func(t *testing.T, body []byte, mutate bool) {
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", jsonType)
		w := httptest.NewRecorder()
		handlers[mutate].ServeHTTP(w, req)
		if w.Code == http.StatusBadRequest {
			return
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || w.Code != http.StatusOK || review.Response == nil {
			t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
		}
		if review.Response.AuditAnnotations["reason"] == string(admission.ReasonPanic) {
			t.Fatal("it panicked")
		}
		if r := review.Response; !r.Allowed || r.UID == "" || (r.Patch != nil && !mutate) || (r.Patch == nil) != (r.PatchType == nil) {
			t.Errorf("answer %s", w.Body)
		}
	})
}
