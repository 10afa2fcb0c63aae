// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of an agent.
type Metrics struct {
	connected, unanswered prometheus.Gauge
	answers, failures     *prometheus.CounterVec
	proofs                prometheus.Histogram
}

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		connected:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "plumbline_agent_connected", Help: "Whether a stream to the discovery server is open."}),
		unanswered: prometheus.NewGauge(prometheus.GaugeOpts{Name: "plumbline_agent_waiting", Help: "Whether a response of the discovery server waits for its proof."}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_agent_answers_total", Help: "Answers to the discovery server, by result: acknowledged or refused.",
		}, []string{"result"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_agent_unproven_total", Help: "Attempts without a proof, by reason: late, refused by the program, or error.",
		}, []string{"reason"}),
		proofs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_agent_proof_seconds", Help: "Time from the begin of an attempt to its proof.",
			Buckets: []float64{0.001, 0.005, 0.02, 0.05, 0.1, 0.5, 1, 5, 30},
		}),
	}
	for _, result := range []string{"acknowledged", "refused"} {
		m.answers.WithLabelValues(result)
	}
	for _, reason := range []string{"late", "refused", "error"} {
		m.failures.WithLabelValues(reason)
	}
	for _, c := range []prometheus.Collector{m.connected, m.unanswered, m.answers, m.failures, m.proofs} {
		if err := registry.Register(c); err != nil {
			return nil, err //nolint:wrapcheck // it names the metric
		}
	}
	return m, nil
}

func (m *Metrics) waiting(is bool) {
	m.unanswered.Set(0)
	if is {
		m.unanswered.Set(1)
	}
}
