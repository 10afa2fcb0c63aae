// SPDX-License-Identifier: Apache-2.0

package answers

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the questions of all memories. They implement prometheus.Collector.
type Metrics struct {
	asked      *prometheus.CounterVec
	remembered *prometheus.CounterVec
}

// Counts are those of one memory.
type Counts struct{ answered, failed, remembered prometheus.Counter }

// NewMetrics makes metrics of zero.
func NewMetrics() *Metrics {
	return &Metrics{
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_api_reviews_total",
			Help: "Reviews of callers that the API server was asked for, by review (token, access) and result: answered, failed.",
		}, []string{"review", "result"}),
		remembered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_api_review_hits_total",
			Help: "Questions about callers that a remembered review answered, by review (token, access).",
		}, []string{"review"}),
	}
}

// Of returns the counts of one sort of reviews.
func (m *Metrics) Of(review string) Counts {
	return Counts{
		answered: m.asked.WithLabelValues(review, "answered"), failed: m.asked.WithLabelValues(review, "failed"),
		remembered: m.remembered.WithLabelValues(review),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.asked.Describe(to)
	m.remembered.Describe(to)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.asked.Collect(to)
	m.remembered.Collect(to)
}
