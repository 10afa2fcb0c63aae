// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// Metrics counts pods. It is a prometheus.Collector.
type Metrics struct {
	pods *prometheus.CounterVec
}

// NewMetrics returns metrics without a sample.
func NewMetrics() *Metrics {
	return &Metrics{pods: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "plumbline_injection_pods_total",
		Help: "Pods for which a proxy was decided on, by outcome (Inject, Leave, Refuse) and reason; dry runs and repeated calls for one pod count too.",
	}, []string{"outcome", "reason"})}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { m.pods.Describe(ch) }

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) { m.pods.Collect(ch) }

func (m *Metrics) observe(d inject.Decision) {
	m.pods.WithLabelValues(string(d.Outcome), string(d.Reason)).Inc()
}
