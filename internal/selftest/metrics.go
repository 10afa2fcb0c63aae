// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the self-test's figures.
type Metrics struct {
	rounds    *prometheus.CounterVec
	unstamped *prometheus.CounterVec
	detection prometheus.Histogram
	last      prometheus.Gauge
	started   prometheus.Gauge
	period    prometheus.Gauge
}

// NewMetrics registers the figures of a self-test that starts now with a period.
func NewMetrics(registry prometheus.Registerer, now time.Time, period time.Duration) (*Metrics, error) {
	m := &Metrics{
		rounds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_selftest_rounds_total",
			Help: "Rounds by result: found, unnamed (found, but the self-test was not named), not_found, error (the self-test itself could not read or write).",
		}, []string{"result"}),
		unstamped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_selftest_unstamped_total",
			Help: "Writes of the self-test that were stored without a stamp: hash (the webhook was not asked), writer.",
		}, []string{"stamp"}),
		detection: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "plumbline_selftest_detection_seconds",
			Help:    "From the API server's answer to the self-test's write until the finding was read in the Baseline, on one clock; read every 100 ms.",
			Buckets: []float64{0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60},
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_selftest_last_found_timestamp_seconds",
			Help: "When the self-test was last found and named, in seconds since 1970; 0 before the first time.",
		}),
		started: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_selftest_started_timestamp_seconds",
			Help: "When this selftest began, in seconds since 1970.",
		}),
		period: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_selftest_period_seconds",
			Help: "Time between two rounds.",
		}),
	}
	for _, result := range Results() {
		m.rounds.WithLabelValues(string(result))
	}
	for _, stamp := range []string{"hash", "writer"} {
		m.unstamped.WithLabelValues(stamp)
	}
	m.started.Set(seconds(now))
	m.period.Set(period.Seconds())
	for _, c := range []prometheus.Collector{m.rounds, m.unstamped, m.detection, m.last, m.started, m.period} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the self-test's metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Metrics) stamped(s Stamps) {
	if !s.Hash {
		m.unstamped.WithLabelValues("hash").Inc()
	}
	if !s.Writer {
		m.unstamped.WithLabelValues("writer").Inc()
	}
}

func (m *Metrics) ended(o Outcome, now time.Time) {
	m.rounds.WithLabelValues(string(o.Result)).Inc()
	switch o.Result {
	case ResultFound:
		m.last.Set(seconds(now))
		m.detection.Observe(o.After.Seconds())
	case ResultUnnamed:
		m.detection.Observe(o.After.Seconds())
	case ResultNotFound, ResultError:
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
