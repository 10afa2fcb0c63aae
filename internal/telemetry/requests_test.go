// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"
)

func TestCountRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer server.Close()
	registry := prometheus.NewRegistry()
	config := &rest.Config{Host: server.URL}
	if err := CountRequests(config, registry); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	for _, url := range []string{server.URL, server.URL, server.URL + "/refused", "http://127.0.0.1:1"} {
		response, err := client.Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
	}
	want := `# HELP plumbline_api_requests_total Requests to the API server by method and code of the answer; error without an answer.
# TYPE plumbline_api_requests_total counter
plumbline_api_requests_total{code="200",method="GET"} 2
plumbline_api_requests_total{code="403",method="GET"} 1
plumbline_api_requests_total{code="error",method="GET"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestTwoPartsOfAProcessCountInOne(t *testing.T) {
	registry := prometheus.NewRegistry()
	count := func() *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "plumbline_tries_total", Help: "Tries."}, []string{"of"})
	}
	for _, part := range []string{"a", "b", "a"} {
		shared, err := Shared(registry, count())
		if err != nil {
			t.Fatal(err)
		}
		shared.WithLabelValues(part).Inc()
	}
	want := `# HELP plumbline_tries_total Tries.
# TYPE plumbline_tries_total counter
plumbline_tries_total{of="a"} 2
plumbline_tries_total{of="b"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "plumbline_tries", Help: "Another one."})
	if _, err := Shared(registry, other); err != nil {
		t.Fatal(err)
	}
	clash := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "plumbline_tries", Help: "Another one."}, nil)
	if _, err := Shared(registry, clash); err == nil {
		t.Error("a collector of another type took the place of one that is there")
	}
}
