// SPDX-License-Identifier: Apache-2.0

package httpapi

import "github.com/prometheus/client_golang/prometheus"

// StreamMetrics count the streams of events. They implement prometheus.Collector.
type StreamMetrics struct {
	open    prometheus.Gauge
	ends    *prometheus.CounterVec
	resyncs prometheus.Counter
}

func newStreamMetrics() *StreamMetrics {
	m := &StreamMetrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "plumbline_api_streams", Help: "Open streams of events."}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_api_stream_ends_total",
			Help: "Streams of events that ended, by reason: caller (left), slow (a write took 5 s), token (ended or refused), rights (the last one was taken away), server (ends), failed.",
		}, []string{"reason"}),
		resyncs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_api_stream_resyncs_total",
			Help: "Notices to streams that events may be missing: the stream was lapped, or begins behind an event that is too old.",
		}),
	}
	for _, reason := range []string{endCaller, endSlow, endToken, endRights, endServer, endFailed} {
		m.ends.WithLabelValues(reason)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *StreamMetrics) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, to) }

// Collect implements prometheus.Collector.
func (m *StreamMetrics) Collect(to chan<- prometheus.Metric) {
	m.open.Collect(to)
	m.ends.Collect(to)
	m.resyncs.Collect(to)
}
