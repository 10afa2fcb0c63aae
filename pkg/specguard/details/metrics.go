// SPDX-License-Identifier: Apache-2.0

package details

import "github.com/prometheus/client_golang/prometheus"

// Reasons for which a record is dropped.
const (
	dropFull      = "queue_full"
	dropRedis     = "redis"
	dropDisabled  = "disabled"
	dropOversized = "oversized"
)

type writerMetrics struct {
	depth   prometheus.GaugeFunc
	dropped *prometheus.CounterVec
	written prometheus.Counter
	up      prometheus.Gauge
}

func newWriterMetrics(depth func() float64) *writerMetrics {
	m := &writerMetrics{
		depth: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "plumbline_admission_records_queue_depth",
			Help: "Records that wait for Redis.",
		}, depth),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_admission_records_dropped_total",
			Help: "Records that were dropped, by reason: queue_full, redis, disabled, oversized (names of more than 4 KiB, which Kubernetes does not give).",
		}, []string{"reason"}),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_admission_records_written_total",
			Help: "Records that Redis took.",
		}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_admission_records_redis_up",
			Help: "1 when the last call to Redis worked, 0 when it failed or before the first call.",
		}),
	}
	// Counters that exist from the start make the first drop visible to rate().
	for _, reason := range []string{dropFull, dropRedis, dropDisabled, dropOversized} {
		m.dropped.WithLabelValues(reason)
	}
	return m
}

func (m *writerMetrics) setUp(up bool) {
	if up {
		m.up.Set(1)
		return
	}
	m.up.Set(0)
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range w.metrics.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (w *Writer) Collect(ch chan<- prometheus.Metric) {
	for _, c := range w.metrics.collectors() {
		c.Collect(ch)
	}
}

func (m *writerMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.depth, m.dropped, m.written, m.up}
}
