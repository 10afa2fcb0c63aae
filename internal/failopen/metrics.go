// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the figures of fail-open windows and sweeps.
type Metrics struct {
	seconds *prometheus.CounterVec
	open    *prometheus.GaugeVec
	ready   prometheus.Gauge
	calls   prometheus.Counter
	reads   *prometheus.CounterVec
	sweeps  *prometheus.CounterVec
	swept   prometheus.Counter
	behind  *prometheus.CounterVec
}

// Sources that are read for evidence.
const (
	sourceEndpoints = "endpoints"
	sourceLease     = "lease"
	sourceAPIServer = "apiserver"
)

// What a sweep may find wrong with an object.
const (
	behindWatch  = "watch"
	behindStatus = "status"
)

// NewMetrics registers the figures.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_fail_open_seconds_total",
			Help: "Seconds in which writes may have passed without the webhook, by evidence; an upper bound, from the last good sign to the next.",
		}, []string{"evidence"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "plumbline_fail_open",
			Help: "1 while the evidence says that the webhook is not asked.",
		}, []string{"evidence"}),
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "plumbline_webhook_ready_endpoints",
			Help: "Ready endpoints of the webhook's Service; -1 before the first look.",
		}),
		calls: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_fail_open_calls_total",
			Help: "Calls of Plumbline's webhooks that the API servers report as failed open.",
		}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_fail_open_read_failures_total",
			Help: "Failed reads of a source of signals; while they last, the source is unknown.",
		}, []string{"source"}),
		sweeps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_sweeps_total",
			Help: "Sweeps after fail-open windows, by result: complete, failed (tried again).",
		}, []string{"result"}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plumbline_sweep_objects_total",
			Help: "Objects written in a fail-open window that a sweep looked at again.",
		}),
		behind: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_sweep_behind_total",
			Help: "Objects that a sweep found behind the API server: the watch had missed a version, or the Baseline's status lagged.",
		}, []string{"where"}),
	}
	m.ready.Set(-1)
	for _, e := range Evidences() {
		m.seconds.WithLabelValues(string(e))
		m.open.WithLabelValues(string(e))
	}
	for _, source := range []string{sourceEndpoints, sourceLease, sourceAPIServer} {
		m.reads.WithLabelValues(source)
	}
	for _, result := range []string{"complete", "failed"} {
		m.sweeps.WithLabelValues(result)
	}
	for _, where := range []string{behindWatch, behindStatus} {
		m.behind.WithLabelValues(where)
	}
	for _, c := range []prometheus.Collector{m.seconds, m.open, m.ready, m.calls, m.reads, m.sweeps, m.swept, m.behind} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of fail-open windows: %w", err)
		}
	}
	return m, nil
}
