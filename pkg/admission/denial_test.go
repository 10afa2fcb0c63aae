// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serveClosed is serve for a handler that lets nothing pass unjudged.
func serveClosed(judge func(context.Context, *Review) Answer, concurrent int) served {
	metrics := NewMetrics()
	return served{NewFailClosed("test", judge, HandlerConfig{Metrics: metrics, Log: quiet(), Limits: NewLimits(concurrent)}), metrics}
}

func TestAHandlerThatFailsClosedDeniesWhatItCannotJudge(t *testing.T) {
	good := envelope(t, create(alice, deployment(t)))
	const uidFirst = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r-1","operation":"CREATE","object":{"a":"`
	unassessed := func(reason Reason) func(context.Context, *Review) Answer {
		return func(context.Context, *Review) Answer { return Unassessed(reason, nil) }
	}
	tests := map[string]struct {
		judge func(context.Context, *Review) Answer
		body  io.Reader // nil: a good one
		none  bool      // no review may be in work at all
		want  Reason
		code  int32
		retry bool
	}{
		"a panic":                       {judge: func(context.Context, *Review) Answer { panic("boom") }, want: ReasonPanic, code: http.StatusInternalServerError},
		"a namespace that is not known": {judge: unassessed(ReasonNamespace), want: ReasonNamespace, code: http.StatusServiceUnavailable, retry: true},
		"an object that is none":        {judge: unassessed(ReasonObject), want: ReasonObject, code: http.StatusInternalServerError},
		"too much at once":              {none: true, want: ReasonShed, code: http.StatusServiceUnavailable, retry: true},
		"a body that breaks off":        {body: brokenBody{strings.NewReader(uidFirst)}, want: ReasonReadFailed, code: http.StatusServiceUnavailable, retry: true},
		"a body that ends early":        {body: strings.NewReader(uidFirst), want: ReasonMalformed, code: http.StatusInternalServerError},
		"a body over the limit": {
			body: strings.NewReader(uidFirst + strings.Repeat("x", MaxBodyBytes) + `"}}}`), want: ReasonTooLarge, code: http.StatusRequestEntityTooLarge,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.body == nil {
				tc.body = bytes.NewReader(good)
			}
			concurrent := 1
			if tc.none {
				concurrent = 0
			}
			s := serveClosed(tc.judge, concurrent)
			got := responseOf(t, s.post(tc.body, jsonType))
			if got.Allowed || got.UID != "r-1" || got.Patch != nil || got.Result == nil {
				t.Fatalf("answer %+v", got)
			}
			var details *metav1.StatusDetails
			if tc.retry {
				details = &metav1.StatusDetails{RetryAfterSeconds: 1}
			}
			if got.Result.Code != tc.code || !cmp.Equal(details, got.Result.Details) || !strings.HasPrefix(got.Result.Message, "plumbline") {
				t.Errorf("status %+v", got.Result)
			}
			if diff := cmp.Diff(map[string]string{"verdict": "denied", "reason": string(tc.want)}, got.AuditAnnotations); diff != "" {
				t.Errorf("audit (-want +got)\n%s", diff)
			}
			if n := testutil.ToFloat64(s.metrics.denied.WithLabelValues("test", string(tc.want))); n != 1 {
				t.Errorf("counted %v denials", n)
			}
			// What was denied has not passed.
			if n := testutil.CollectAndCount(s.metrics.unassessed); n != 0 {
				t.Errorf("counted %v that passed", n)
			}
		})
	}
}

func TestAHandlerThatFailsClosedPassesAnAnswerOn(t *testing.T) {
	s := serveClosed(func(_ context.Context, r *Review) Answer {
		return Answer{Verdict: verdictAllow, Patch: []byte(`[]`)}
	}, 1)
	got := responseOf(t, s.post(bytes.NewReader(envelope(t, create(alice, deployment(t)))), jsonType))
	if !got.Allowed || string(got.Patch) != "[]" || got.Result != nil {
		t.Errorf("answer %+v", got)
	}
}

func TestTheJudgeHearsWhenTheAPIServerHasGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	heard := false
	s := serveClosed(func(ctx context.Context, _ *Review) Answer {
		heard = ctx.Err() != nil
		return Unassessed(ReasonNamespace, ctx.Err())
	}, 1)
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(envelope(t, create(alice, deployment(t)))))
	req.Header.Set("Content-Type", jsonType)
	s.handler.ServeHTTP(httptest.NewRecorder(), req)
	if !heard {
		t.Error("it did not")
	}
}
