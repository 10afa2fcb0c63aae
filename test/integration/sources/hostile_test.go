// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sources

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/effectiveness"
	"github.com/plumbline-dev/plumbline/internal/source"
	"github.com/plumbline-dev/plumbline/internal/source/alertmanager"
	"github.com/plumbline-dev/plumbline/internal/source/prometheus"
	"github.com/plumbline-dev/plumbline/pkg/effect"
	"github.com/plumbline-dev/plumbline/test/harness/monitoring"
)

// wide has more alerts, and more series, than an answer may have.
func wide(r *http.Request) string {
	var b strings.Builder
	if strings.HasPrefix(r.URL.Path, "/api/v2/") {
		for i := range 501 {
			fmt.Fprintf(&b, `,{"fingerprint":"%d"}`, i)
		}
		return "[" + b.String()[1:] + "]"
	}
	for range 10_000 {
		b.WriteString(`,{"metric":{},"values":[[1,"1"]]}`)
	}
	return `{"status":"success","data":{"resultType":"matrix","result":[` + b.String()[1:] + `]}}`
}

// Whatever a source answers, its component is not answered, with a reason that names no address.
func TestASourceThatAnswersBadlyHasNoAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer          http.HandlerFunc
		alerts, metrics string
	}{
		"it wants a token": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
			"Alertmanager refuses the request: it answers 401", "Prometheus refuses the request: it answers 401"},
		"10,000 series, and 501 alerts": {func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, wide(r)) },
			"501 alerts match, want at most 500", "the query has 10000 series, want at most 20"},
		"10 MiB": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", 10<<20)) },
			"the answer of Alertmanager has more than 1048576 bytes", "the answer of Prometheus has more than 1048576 bytes"},
		"a page of a login": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html><title>Log in</title>") },
			"Alertmanager answers with a page, as a login does", "Prometheus answers with a page, as a login does"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		},
			"Alertmanager answers 302, and no redirect is followed", "Prometheus answers 302, and no redirect is followed"},
		"another program": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"ok"}`) },
			"the answer of Alertmanager is not the JSON of its API", "the answer of Prometheus is no matrix"},
		"a certificate that is not trusted": {nil, "no answer of Alertmanager: the certificate is not trusted", "no answer of Prometheus: the certificate is not trusted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(tc.answer)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			if tc.answer == nil {
				s.StartTLS()
			} else {
				s.Start()
			}
			t.Cleanup(s.Close)
			if diff := cmp.Diff([]string{tc.alerts, tc.metrics}, ask(t.Context(), t, s.URL)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// ask asks both sources at one address, and returns why they have no answer.
func ask(ctx context.Context, t *testing.T, url string) []string {
	t.Helper()
	sources := newSources(t)
	var err error
	if sources.Alerts, err = alertmanager.New(source.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	if sources.Metrics, err = prometheus.New(source.Config{URL: url}, time.Now); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	q := effectiveness.Question{
		Target: web, Queries: []effect.Query{{Name: "q", PromQL: "up", Objective: effect.LowerIsBetter, Floor: 1}},
		DriftTime: now.Add(-time.Hour), WrittenTime: now.Add(-30 * time.Minute), StabilizedTime: now.Add(-25 * time.Minute), Now: now,
	}
	return []string{sources.AskAlerts(ctx, &q).Why, sources.AskMetrics(ctx, &q)[0].Why}
}

func TestARealSourceThatIsAwayHasNoAnswer(t *testing.T) {
	t.Parallel()
	alerts := monitoring.StartAlertmanager(t, `{route: {receiver: "none"}, receivers: [{name: "none"}]}`)
	t.Run("Prometheus is no Alertmanager, and the other way round", func(t *testing.T) {
		want := []string{"", "Prometheus answers 404"}
		if diff := cmp.Diff(want, ask(t.Context(), t, alerts.URL())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("it hangs", func(t *testing.T) {
		alerts.Pause()
		defer alerts.Resume()
		soon, cancel := context.WithTimeout(t.Context(), time.Second) // of the ten that a request has
		defer cancel()
		want := []string{"no answer of Alertmanager: the answer is late", "no answer of Prometheus: the answer is late"}
		if diff := cmp.Diff(want, ask(soon, t, alerts.URL())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("it is down", func(t *testing.T) {
		alerts.Stop()
		want := []string{"no answer of Alertmanager: the connection is refused", "no answer of Prometheus: the connection is refused"}
		if diff := cmp.Diff(want, ask(t.Context(), t, alerts.URL())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
