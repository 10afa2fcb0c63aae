// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type served struct {
	handler http.Handler
	metrics *Metrics
}

func serve(judge func(*Review) Answer, concurrent int) served {
	metrics := NewMetrics()
	return served{NewHandler("test", judge, HandlerConfig{Metrics: metrics, Log: quiet(), Limits: NewLimits(concurrent)}), metrics}
}

func (s served) post(body io.Reader, contentType string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/", body)
	req.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, req)
	return w
}

func (s served) unassessed(reason Reason) float64 {
	return testutil.ToFloat64(s.metrics.unassessed.WithLabelValues("test", string(reason)))
}

func responseOf(t *testing.T, w *httptest.ResponseRecorder) admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" {
		t.Errorf("answered with %s %s", review.APIVersion, review.Kind)
	}
	return *review.Response
}

const jsonType = "application/json"

func allow(*Review) Answer { return Answer{Verdict: verdictAllow} }

func TestAnAnswerTravels(t *testing.T) {
	s := serve(func(*Review) Answer {
		return Answer{Verdict: "warn", Class: v1alpha1.ActorUntrusted, Patch: []byte(`[]`), Warnings: []string{"w"}, Audit: map[string]string{"b": "2", "a": "1"}}
	}, 1)
	body := envelope(t, create(alice, deployment(t)))
	w := s.post(bytes.NewReader(body), jsonType+"; charset=utf-8")
	patchType := admissionv1.PatchTypeJSONPatch
	want := admissionv1.AdmissionResponse{
		UID: "r-1", Allowed: true, Patch: []byte(`[]`), PatchType: &patchType, Warnings: []string{"w"},
		AuditAnnotations: map[string]string{"a": "1", "b": "2"},
	}
	if diff := cmp.Diff(want, responseOf(t, w)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if again := s.post(bytes.NewReader(body), jsonType); !bytes.Equal(w.Body.Bytes(), again.Body.Bytes()) {
		t.Error("the same review got other bytes")
	}
	if n := testutil.ToFloat64(s.metrics.reviews.WithLabelValues("test", "create", "warn", "untrusted")); n != 2 {
		t.Errorf("counted %v reviews", n)
	}
	problems, err := testutil.CollectAndLint(s.metrics)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", err, problems)
	}
}

type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func TestEveryFailureIsAnAnswerThatAllows(t *testing.T) {
	good := envelope(t, create(alice, deployment(t)))
	// The API server writes the uid before the objects.
	uidFirst := []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r-1","operation":"CREATE","object":{"a":"`)
	huge := append(append(bytes.Clone(uidFirst), bytes.Repeat([]byte("x"), MaxBodyBytes)...), `"}}}`...)
	tests := map[string]struct {
		judge func(*Review) Answer
		body  io.Reader
		want  Reason
	}{
		"a panic":                            {judge: func(*Review) Answer { panic("boom") }, body: bytes.NewReader(good), want: ReasonPanic},
		"a body over the limit":              {body: bytes.NewReader(huge), want: ReasonTooLarge},
		"a body over the limit, unannounced": {body: io.MultiReader(bytes.NewReader(huge)), want: ReasonTooLarge},
		"a body that breaks off":             {body: brokenBody{bytes.NewReader(uidFirst)}, want: ReasonReadFailed},
		"a body that ends early":             {body: bytes.NewReader(uidFirst), want: ReasonMalformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			judge := tc.judge
			if judge == nil {
				judge = allow
			}
			s := serve(judge, 1)
			response := responseOf(t, s.post(tc.body, jsonType))
			if !response.Allowed || response.UID != "r-1" {
				t.Errorf("allowed %v uid %q", response.Allowed, response.UID)
			}
			if diff := cmp.Diff(map[string]string{"verdict": "unassessed", "reason": string(tc.want)}, response.AuditAnnotations); diff != "" {
				t.Errorf("audit (-want +got)\n%s", diff)
			}
			if n := s.unassessed(tc.want); n != 1 {
				t.Errorf("counted %v", n)
			}
			// The place in the limiter was given back: the next review is worked on.
			if response := responseOf(t, s.post(bytes.NewReader(good), jsonType)); tc.judge == nil && response.AuditAnnotations != nil {
				t.Errorf("the next review got %v", response.AuditAnnotations)
			}
		})
	}
}

func TestWithoutAUIDTheStatusSaysWhatIsWrong(t *testing.T) {
	good := envelope(t, create(alice, deployment(t)))
	tests := map[string]struct {
		body, contentType string
		reason            Reason
		want              int
	}{
		"another content type": {string(good), "application/yaml", ReasonContentType, http.StatusUnsupportedMediaType},
		"no content type":      {string(good), "", ReasonContentType, http.StatusUnsupportedMediaType},
		"no JSON":              {"hello", jsonType, ReasonMalformed, http.StatusBadRequest},
		"nothing":              {"", jsonType, ReasonMalformed, http.StatusBadRequest},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(allow, 1)
			if w := s.post(strings.NewReader(tc.body), tc.contentType); w.Code != tc.want {
				t.Errorf("status %d, want %d", w.Code, tc.want)
			}
			if n := s.unassessed(tc.reason); n != 1 {
				t.Errorf("counted %v", n)
			}
		})
	}
	t.Run("a GET", func(t *testing.T) {
		w := httptest.NewRecorder()
		serve(allow, 1).handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("status %d", w.Code)
		}
	})
}

func TestMoreReviewsThanAllowedAreShed(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(func(*Review) Answer {
		entered <- struct{}{}
		<-leave
		return Answer{Verdict: verdictAllow}
	}, 1)
	body := envelope(t, create(alice, deployment(t)))
	var wg sync.WaitGroup
	wg.Go(func() { s.post(bytes.NewReader(body), jsonType) })
	<-entered
	response := responseOf(t, s.post(bytes.NewReader(body), jsonType))
	if !response.Allowed || response.AuditAnnotations["reason"] != string(ReasonShed) {
		t.Errorf("answer %+v", response)
	}
	close(leave)
	wg.Wait()
	if n := s.unassessed(ReasonShed); n != 1 {
		t.Errorf("counted %v", n)
	}
}
