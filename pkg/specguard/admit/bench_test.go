// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	stockadmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// benchHandler posts one body again and again and reports the distribution.
func benchHandler(b *testing.B, handler http.Handler, body []byte) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	took := make([]time.Duration, 0, b.N)
	for b.Loop() {
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", jsonType)
		w := httptest.NewRecorder()
		start := time.Now()
		handler.ServeHTTP(w, req)
		took = append(took, time.Since(start))
		if w.Code != http.StatusOK {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkReview measures the handlers on an update of a Deployment of 20 KiB
// (image changed), the "old" and "new" of which make the review twice as large;
// "stock" is controller-runtime's admission path with the work done by
// encoding/json: decode the review, both objects, compare, re-encode, and the
// patch by comparison of documents.
func BenchmarkReview(b *testing.B) {
	old := bigDeployment(b, 20<<10)
	body := envelope(b, update(alice, bigDeployment(b, 20<<10, image("x:2")), old))
	b.Logf("object %d bytes, review %d bytes", len(old), len(body))
	reviewer, _ := newReviewer(b, nil)
	reviewer.Recorder = drop{}
	cfg := admission.HandlerConfig{Metrics: admission.NewMetrics(), Log: quiet(), Limits: admission.NewLimits(64)}
	b.Run("validate", func(b *testing.B) { benchHandler(b, admission.NewHandler("validate", reviewer.Validate, cfg), body) })
	b.Run("mutate", func(b *testing.B) { benchHandler(b, admission.NewHandler("mutate", reviewer.Mutate, cfg), body) })
	b.Run("both", func(b *testing.B) {
		validate, mutate := admission.NewHandler("validate", reviewer.Validate, cfg), admission.NewHandler("mutate", reviewer.Mutate, cfg)
		benchHandler(b, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			again := req.Clone(req.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			mutate.ServeHTTP(httptest.NewRecorder(), req)
			validate.ServeHTTP(w, again)
		}), body)
	})
	b.Run("stock", func(b *testing.B) {
		benchHandler(b, &stockadmission.Webhook{Handler: stockadmission.HandlerFunc(stock)}, body)
	})
}

type drop struct{}

// Enqueue implements Recorder.
func (drop) Enqueue(specguard.WriteRecord) bool { return true }

// stock is what a handler does that follows the usual examples.
func stock(_ context.Context, req stockadmission.Request) stockadmission.Response {
	var object, old map[string]any
	if err := json.Unmarshal(req.Object.Raw, &object); err != nil {
		return stockadmission.Errored(http.StatusBadRequest, err)
	}
	if err := json.Unmarshal(req.OldObject.Raw, &old); err != nil {
		return stockadmission.Errored(http.StatusBadRequest, err)
	}
	if reflect.DeepEqual(object["spec"], old["spec"]) {
		return stockadmission.Allowed("")
	}
	metadata := object["metadata"].(map[string]any)
	metadata["annotations"] = map[string]any{hashKey: "x"}
	raw, err := json.Marshal(object)
	if err != nil {
		return stockadmission.Errored(http.StatusBadRequest, err)
	}
	return stockadmission.PatchResponseFromRaw(req.Object.Raw, raw)
}
