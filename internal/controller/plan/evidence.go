// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
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
			Help: "Calls of the evidence store by operation (create, read, probe) and result: done, taken (the name existed), absent, stopped (this process ends), or the fault of the store.",
		}, []string{"operation", "result"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "plumbline_remediation_evidence_write_seconds",
			Help:    "Time to write one record, or one body, durably.",
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
			m.calls.WithLabelValues(operation, telemetry.SpellWord(string(reason)))
		}
	}
	return m
}

func (m *evidenceMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.took, m.ready}
}

// storeDeadline bounds each call of the evidence store. Pause, Cancel and Halt of every
// plan wait for such a call.
const storeDeadline = 5 * time.Second

// Monitored is a store whose calls are bounded in time, and counted. It is probed once in
// an interval at most, and the gauge tells of its last answer.
func (m *Metrics) Monitored(store evidence.Store, interval time.Duration, own clock.PassiveClock) evidence.Store {
	counted := &countedStore{Store: evidence.WithDeadline(store, storeDeadline), metrics: &m.evidence, clock: own}
	monitor := evidence.NewMonitor(counted, interval, own.Now)
	m.evidence.ready.follow(monitor, own)
	return monitor
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
	s.count(ctx, callProbe, err)
	return err
}

func (s *countedStore) count(ctx context.Context, operation string, err error) {
	s.metrics.calls.WithLabelValues(operation, resultOf(ctx, err)).Inc()
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
		return telemetry.SpellWord(string(failure.Reason))
	}
	return telemetry.SpellWord(string(evidence.StoreFailed))
}

// answerStale is how old the last answer of a store may be that still counts. The executor
// asks every five minutes, so an older one means that a call has not come back.
const answerStale = 7 * time.Minute

// storeIsReady says by the last answer whether a record could be written now.
func storeIsReady(last evidence.Answer, now time.Time) bool {
	return last.Err == nil && now.Sub(last.At) <= answerStale
}

// readyGauge says nothing before the first answer: a standby has not asked.
type readyGauge struct {
	mu      sync.Mutex
	monitor *evidence.Monitor
	clock   clock.PassiveClock
}

var readyDesc = prometheus.NewDesc("plumbline_remediation_evidence_store_ready",
	"1 when the evidence store last answered that a record can be written. 0 when not, or when that answer is older than seven minutes: then there is no remediation. Absent on a replica that waits.", nil, nil)

func (g *readyGauge) follow(monitor *evidence.Monitor, own clock.PassiveClock) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.monitor, g.clock = monitor, own
}

// Describe implements prometheus.Collector.
func (g *readyGauge) Describe(ch chan<- *prometheus.Desc) { ch <- readyDesc }

// Collect implements prometheus.Collector.
func (g *readyGauge) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.monitor == nil {
		return
	}
	if last, known := g.monitor.Last(); known {
		ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, truth(storeIsReady(last, g.clock.Now())))
	}
}
