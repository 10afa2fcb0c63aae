// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
)

// evidenceMetrics are about the store of the records.
type evidenceMetrics struct {
	calls *prometheus.CounterVec
	took  prometheus.Histogram
	ready *readyGauge
}

// The calls of a store, as a label.
const (
	callCreate = "create"
	callRead   = "read"
	callProbe  = "probe"
)

// The results of a call that are no failure of the store.
const (
	resultDone    = "done"
	resultTaken   = "taken"
	resultAbsent  = "absent"
	resultStopped = "stopped"
)

func newEvidenceMetrics() evidenceMetrics {
	m := evidenceMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_remediation_evidence_calls_total",
			Help: "Calls of the evidence store by operation (create, read, probe) and result: done, taken (the name existed), absent, stopped (this process ends), or why the store failed.",
		}, []string{"operation", "result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "plumbline_remediation_evidence_write_seconds",
			Help:    "Time to write one record durably.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10},
		}),
		ready: &readyGauge{},
	}
	// They begin at zero, so that rate() sees the first of each.
	for _, operation := range []string{callCreate, callRead, callProbe} {
		m.calls.WithLabelValues(operation, resultDone)
		for _, reason := range []evidence.StoreReason{
			evidence.StoreFull, evidence.StoreReadOnly, evidence.StoreDenied, evidence.StoreUnreachable, evidence.StoreUnsupported, evidence.StoreFailed,
		} {
			m.calls.WithLabelValues(operation, spelt(string(reason)))
		}
	}
	return m
}

func (m *evidenceMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.took, m.ready}
}

// Counted is a store whose calls are counted.
func (m *Metrics) Counted(store evidence.Store, own clock.PassiveClock) evidence.Store {
	return &countedStore{Store: store, metrics: &m.evidence, clock: own}
}

type countedStore struct {
	evidence.Store
	metrics *evidenceMetrics
	clock   clock.PassiveClock
}

// Create implements evidence.Store.
func (s *countedStore) Create(ctx context.Context, name string, data []byte) error {
	begin := s.clock.Now()
	err := s.Store.Create(ctx, name, data)
	if err == nil {
		s.metrics.took.Observe(s.clock.Since(begin).Seconds())
	}
	s.count(ctx, callCreate, err)
	return err
}

// Read implements evidence.Store.
func (s *countedStore) Read(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Store.Read(ctx, name)
	s.count(ctx, callRead, err)
	return data, err
}

// Ready implements evidence.Store.
func (s *countedStore) Ready(ctx context.Context) error {
	err := s.Store.Ready(ctx)
	if result := s.count(ctx, callProbe, err); result != resultStopped {
		s.metrics.ready.set(err == nil)
	}
	return err
}

func (s *countedStore) count(ctx context.Context, operation string, err error) string {
	result := resultOf(ctx, err)
	s.metrics.calls.WithLabelValues(operation, result).Inc()
	return result
}

// resultOf is the result of a call, as a label.
func resultOf(ctx context.Context, err error) string {
	failure, ok := errors.AsType[*evidence.StoreError](err)
	switch {
	case err == nil:
		return resultDone
	case errors.Is(err, evidence.ErrExists):
		return resultTaken
	case errors.Is(err, evidence.ErrNotFound):
		return resultAbsent
	case errors.Is(ctx.Err(), context.Canceled):
		return resultStopped
	case ok:
		return spelt(string(failure.Reason))
	}
	return spelt(string(evidence.StoreFailed))
}

// readyGauge says nothing before the first probe: a standby has not asked.
type readyGauge struct{ state atomic.Int32 }

// The states of a readyGauge.
const (
	notProbed int32 = iota
	probedReady
	probedUnready
)

var readyDesc = prometheus.NewDesc("plumbline_remediation_evidence_store_ready",
	"1 when a record could be written at the last probe, 0 when not: nothing is remediated then. Absent on a replica that waits.", nil, nil)

func (g *readyGauge) set(ready bool) {
	if ready {
		g.state.Store(probedReady)
		return
	}
	g.state.Store(probedUnready)
}

// Describe implements prometheus.Collector.
func (g *readyGauge) Describe(ch chan<- *prometheus.Desc) { ch <- readyDesc }

// Collect implements prometheus.Collector.
func (g *readyGauge) Collect(ch chan<- prometheus.Metric) {
	switch g.state.Load() {
	case probedReady:
		ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, 1)
	case probedUnready:
		ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, 0)
	}
}
