// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// CountRequests counts the requests of every client that is made from config
// afterwards, in plumbline_api_requests_total{method,code}. The code is that of
// the answer, or "error" when none came. Watches count when they begin.
func CountRequests(config *rest.Config, registry prometheus.Registerer) error {
	requests, err := Shared(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_api_requests_total",
		Help: "Requests to the API server by method and code of the answer; error without an answer.",
	}, []string{"method", "code"}))
	if err != nil {
		return fmt.Errorf("registering the count of requests: %w", err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &requestCounter{next, requests} })
	return nil
}

type requestCounter struct {
	next     http.RoundTripper
	requests *prometheus.CounterVec
}

// RoundTrip implements http.RoundTripper.
func (c *requestCounter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	code := "error"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	c.requests.WithLabelValues(request.Method, code).Inc()
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (c *requestCounter) WrappedRoundTripper() http.RoundTripper { return c.next }
