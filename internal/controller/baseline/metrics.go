// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Metrics are the assessor's figures. No object is named in a label.
type Metrics struct {
	clock clock.PassiveClock

	findings     *prometheus.CounterVec
	joins        *prometheus.CounterVec
	detect       *prometheus.HistogramVec
	resolved     prometheus.Histogram
	overflows    prometheus.Counter
	conflicts    prometheus.Counter
	completed    prometheus.Counter
	trimFailures prometheus.Counter
	recordGaps   prometheus.Counter
	liveReads    prometheus.Counter
	displaced    *prometheus.CounterVec
	watchErrors  *prometheus.CounterVec

	eventsSuppressed *prometheus.CounterVec

	objects *prometheus.Desc
	oldest  *prometheus.Desc
	// quarantined is the age of the oldest quarantine.
	quarantined *prometheus.Desc
	staleness   *prometheus.Desc
	recordsUp   *prometheus.Desc

	mu    sync.Mutex
	known map[kube.Key]figure
	last  time.Time
	// quarantines are when the quarantines in force began.
	quarantines map[kube.Key]time.Time
	// records tells whether records of writes can be read; nil where nobody reads any.
	records *bool
}

// figure is what is counted of one object.
type figure struct {
	state    v1alpha1.DriftState
	severity v1alpha1.SeverityLevel
	since    time.Time
}

// NewMetrics registers the assessor's metrics.
func NewMetrics(registry prometheus.Registerer, clk clock.PassiveClock) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &Metrics{
		clock: clk,
		findings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_findings_total", Help: "Findings when first seen, by class of finding and of actor.",
		}, []string{"class", "actor_class"}),
		joins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_attributions_total", Help: "Findings when first seen, by the proof that names the actor.",
		}, []string{"source"}),
		detect: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plumbline_drift_detection_seconds",
			Help:    "From the write (admission) or its delivery by the watch (watch) until the drift is in Baseline status.",
			Buckets: []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60},
		}, []string{"from"}),
		resolved: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "plumbline_drift_age_seconds", Help: "Age of drift when it ended.",
			Buckets: []float64{60, 300, 1800, 3600, 14400, 86400, 604800},
		}),
		overflows:    counter("plumbline_assessor_queue_overflow_total", "Transitions merged because an object changed faster than it was assessed."),
		conflicts:    counter("plumbline_assessor_conflicts_total", "Writes rejected because another writer had written; decided again."),
		completed:    counter("plumbline_assessor_completed_total", "Decisions completed after a crash."),
		trimFailures: counter("plumbline_assessor_trim_failures_total", "Old revisions that could not be removed for now."),
		recordGaps:   counter("plumbline_assessor_admission_record_gaps_total", "Times that records of writes may have been lost before they were read."),
		liveReads:    counter("plumbline_assessor_content_reads_total", "Live reads of objects without kept content when they were judged."),
		displaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_assessor_admission_records_dropped_total",
			Help: "Records of writes that made room for others before they were joined, by reason: per_object (more than 64 of one object), count (more than 20000), bytes (more than 32 MiB).",
		}, []string{"reason"}),
		watchErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_assessor_watch_errors_total", Help: "Failed requests of the watches, by kind.",
		}, []string{"kind"}),
		eventsSuppressed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_assessor_events_suppressed_total",
			Help: "Kubernetes Events that were dropped because there were too many (more than 200 at once in a namespace or 1000 in all), by type. Baselines still have the state.",
		}, []string{"type"}),
		objects: prometheus.NewDesc("plumbline_drift_objects",
			"Guarded objects by kind, state and severity; Retired ones while their Baselines are kept.", []string{"kind", "state", "severity"}, nil),
		oldest: prometheus.NewDesc("plumbline_drift_oldest_seconds",
			"Age of the oldest drift by kind.", []string{"kind"}, nil),
		quarantined: prometheus.NewDesc("plumbline_quarantine_oldest_seconds",
			"Age of the oldest quarantine; 0 while no object is in quarantine.", nil, nil),
		staleness: prometheus.NewDesc("plumbline_assessor_last_assessed_seconds",
			"Time since the last object was assessed.", nil, nil),
		recordsUp: prometheus.NewDesc("plumbline_assessor_admission_records_up",
			"1 while the webhook's records of writes can be read, 0 while they cannot; absent without Redis.", nil, nil),
		known: map[kube.Key]figure{}, quarantines: map[kube.Key]time.Time{},
	}
	for _, c := range []prometheus.Collector{
		m, m.findings, m.joins, m.detect, m.resolved, m.overflows, m.conflicts, m.completed,
		m.trimFailures, m.recordGaps, m.liveReads, m.displaced, m.watchErrors, m.eventsSuppressed,
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the assessor's metrics: %w", err)
		}
	}
	m.recordsDisplaced(Displaced{}) // counters that exist from the start make the first drop visible to rate()
	return m, nil
}

// Overflow counts a merged transition; it is a kube.Hooks.Overflow.
func (m *Metrics) Overflow(kube.Key) { m.overflows.Inc() }

// WatchFailed counts a failed request; it is a kube.Hooks.Failed.
func (m *Metrics) WatchFailed(gvk schema.GroupVersionKind, _ error) {
	m.watchErrors.WithLabelValues(gvk.GroupKind().String()).Inc()
}

// recordsReadable says whether the last read of records reached their source.
func (m *Metrics) recordsReadable(up bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = &up
}

// recordsDisplaced counts records that were dropped for want of room.
func (m *Metrics) recordsDisplaced(d Displaced) {
	m.displaced.WithLabelValues("per_object").Add(float64(d.PerObject))
	m.displaced.WithLabelValues("count").Add(float64(d.Count))
	m.displaced.WithLabelValues("bytes").Add(float64(d.Bytes))
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.objects
	ch <- m.oldest
	ch <- m.quarantined
	ch <- m.staleness
	ch <- m.recordsUp
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	type group struct {
		kind string
		figure
	}
	counts := map[group]float64{}
	oldest := map[string]time.Time{}
	now := m.clock.Now()
	m.mu.Lock()
	last, records := m.last, m.records
	for key, f := range m.known {
		kind := key.GroupKind().String()
		counts[group{kind, figure{state: f.state, severity: f.severity}}]++
		if at, ok := oldest[kind]; !f.since.IsZero() && (!ok || f.since.Before(at)) {
			oldest[kind] = f.since
		}
	}
	quarantined := now
	for _, since := range m.quarantines {
		if since.Before(quarantined) {
			quarantined = since
		}
	}
	m.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(m.quarantined, prometheus.GaugeValue, now.Sub(quarantined).Seconds())
	for g, n := range counts {
		ch <- prometheus.MustNewConstMetric(m.objects, prometheus.GaugeValue, n, g.kind, string(g.state), string(g.severity))
	}
	for kind, at := range oldest {
		ch <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, now.Sub(at).Seconds(), kind)
	}
	if !last.IsZero() {
		ch <- prometheus.MustNewConstMetric(m.staleness, prometheus.GaugeValue, now.Sub(last).Seconds())
	}
	if records != nil {
		ch <- prometheus.MustNewConstMetric(m.recordsUp, prometheus.GaugeValue, map[bool]float64{true: 1}[*records])
	}
}

// decided takes the figures of one decision that was carried out.
func (m *Metrics) decided(s *subject, d *decision) {
	if d.removed || s.baseline == nil {
		m.forget(s.key)
		return
	}
	status := &s.baseline.Status
	f := figure{state: status.State}
	if status.Severity != nil {
		f.severity = status.Severity.Level
	}
	if status.FirstSeenTime != nil {
		f.since = status.FirstSeenTime.Time
	}
	m.mu.Lock()
	m.known[s.key] = f
	m.last = m.clock.Now()
	m.mu.Unlock()
	if d.before.FirstSeenTime != nil && status.FirstSeenTime == nil {
		m.resolved.Observe(s.now.Sub(d.before.FirstSeenTime.Time).Seconds())
	}
	m.count(s, d)
}

// count counts findings that were not there before.
func (m *Metrics) count(s *subject, d *decision) {
	type identity struct{ path, digest string }
	before := map[identity]bool{}
	for i := range d.before.Findings {
		before[identity{d.before.Findings[i].Path, d.before.Findings[i].Digest}] = true
	}
	fresh := false
	for i := range s.baseline.Status.Findings {
		f := &s.baseline.Status.Findings[i]
		if before[identity{f.Path, f.Digest}] {
			continue
		}
		fresh = true
		m.findings.WithLabelValues(string(f.Class), string(f.Actor.Class)).Inc()
		m.joins.WithLabelValues(string(f.Actor.Source)).Inc()
	}
	if fresh {
		m.timeToDetect(s, d)
	}
}

// timeToDetect measures from the record of the write if there is one, and from
// the delivery by the watch otherwise.
func (m *Metrics) timeToDetect(s *subject, d *decision) {
	now := m.clock.Now()
	if n := len(d.records); n > 0 {
		m.detect.WithLabelValues("admission").Observe(max(0, now.Sub(d.records[n-1].Time).Seconds()))
	}
	if n := d.settled; n > 0 {
		m.detect.WithLabelValues("watch").Observe(max(0, now.Sub(s.view.Pending[n-1].SeenAt).Seconds()))
	}
}

// forget takes an object out of the figures.
func (m *Metrics) forget(key kube.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

// noteQuarantine takes the quarantine of an object; a Baseline of nil has none.
func (m *Metrics) noteQuarantine(key kube.Key, b *v1alpha1.Baseline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b == nil || b.Status.Quarantine == nil {
		delete(m.quarantines, key)
		return
	}
	m.quarantines[key] = b.Status.Quarantine.StartTime.Time
}
