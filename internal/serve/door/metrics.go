// SPDX-License-Identifier: Apache-2.0

package door

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count the answers. They implement prometheus.Collector.
type Metrics struct{ *prometheus.CounterVec }

// NewMetrics makes metrics of zero.
func NewMetrics() Metrics {
	return Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_api_responses_total",
		Help: "Answers of the REST API and the console by operation and code; operation none is that of paths without one.",
	}, []string{"operation", "code"})}
}

func (m Metrics) count(operation string, code int) {
	if operation == "" {
		operation = "none"
	}
	m.WithLabelValues(operation, strconv.Itoa(code)).Inc()
}
