// SPDX-License-Identifier: Apache-2.0

package tlsport

import "github.com/prometheus/client_golang/prometheus"

// Metrics of one port. They implement prometheus.Collector.
type Metrics struct {
	connections        prometheus.Gauge
	connectionsRefused *prometheus.CounterVec
	handshakesNow      *prometheus.GaugeVec
	handshakes         [3]prometheus.Gauge // of handshakesNow, by handshakeState
	handshakesDone     prometheus.Counter
	handshakesRefused  *prometheus.CounterVec
	handshakeErrors    *prometheus.CounterVec
}

// NewMetrics whose names begin with a prefix.
func NewMetrics(prefix string) *Metrics {
	m := &Metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "_connections",
			Help: "Open connections with a completed TLS handshake.",
		}),
		connectionsRefused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_connections_refused_total",
			Help: "Connections that were closed because there were too many, by reason: caller (one address had too many), evicted (it had most when all were taken).",
		}, []string{"reason"}),
		handshakesNow: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "_handshakes",
			Help: "TLS handshakes that are under way, by state: computing, waiting (for its turn to be computed), peer (the caller is to send something).",
		}, []string{"state"}),
		handshakesDone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_handshakes_total",
			Help: "TLS handshakes that succeeded.",
		}),
		handshakesRefused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_handshakes_refused_total",
			Help: "Connections that were closed before their TLS handshake was done, by reason: caller (its address had most when all places were taken), evicted (the same, for another address), turn (its turn did not come in time).",
		}, []string{"reason"}),
		handshakeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_handshake_errors_total",
			Help: "TLS handshakes that failed, by reason: certificate_rejected (the caller does not trust the serving certificate), other.",
		}, []string{"reason"}),
	}
	m.handshakes = [...]prometheus.Gauge{
		handshakePeer:      m.handshakesNow.WithLabelValues("peer"),
		handshakeWaiting:   m.handshakesNow.WithLabelValues("waiting"),
		handshakeComputing: m.handshakesNow.WithLabelValues("computing"),
	}
	return m
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.connections, m.connectionsRefused, m.handshakesNow, m.handshakesDone, m.handshakesRefused, m.handshakeErrors}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}
