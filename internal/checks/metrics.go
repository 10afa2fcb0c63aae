// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// result is what became of a check.
type result string

// The results.
const (
	// resultUnchanged: it is what the Baseline tells.
	resultUnchanged result = "unchanged"
	// resultChanged: it is not, and the watch knows that too.
	resultChanged result = "changed"
	// resultMissed: the watch had missed what was read.
	resultMissed result = "missed"
	// resultFailed: nothing could be read, or judged.
	resultFailed result = "failed"
)

// Metrics are the figures of checks.
type Metrics struct {
	clock   clock.PassiveClock
	total   *prometheus.CounterVec
	running *prometheus.Desc
	waiting *prometheus.Desc
	overdue *prometheus.Desc
	age     *prometheus.Desc
	agenda  *Agenda
}

// NewMetrics registers the figures of the checks on an agenda.
func NewMetrics(registry prometheus.Registerer, clk clock.PassiveClock, agenda *Agenda) (*Metrics, error) {
	m := &Metrics{
		clock: clk, agenda: agenda,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_drift_checks_total",
			Help: "Checks past the watch, scheduled or asked for, by kind and result: unchanged, changed, missed (by the watch), failed.",
		}, []string{"kind", "result"}),
		running: prometheus.NewDesc("plumbline_drift_checks_running",
			"Checks that go on, from before they start until their result is in the Baseline.", nil, nil),
		waiting: prometheus.NewDesc("plumbline_drift_checks_due",
			"Objects with a check that is due and has not started, by the bound: Threshold and EnvironmentThreshold when their room is taken.", []string{"obstacle"}, nil),
		overdue: prometheus.NewDesc("plumbline_drift_checks_overdue_seconds",
			"How long the oldest due check has been due, of those that only room or pace holds back; 0 without one.", nil, nil),
		age: prometheus.NewDesc("plumbline_drift_check_age_seconds",
			"Time since the oldest last operation of an object with scheduled checks: a check, or a change.", nil, nil),
	}
	if err := registry.Register(m); err != nil {
		return nil, fmt.Errorf("registering the metrics of checks: %w", err)
	}
	return m, nil
}

// countCheck counts a check by its result.
func (m *Metrics) countCheck(key kube.Key, result result) {
	m.total.WithLabelValues(key.GroupKind().String(), string(result)).Inc()
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.total.Describe(ch)
	for _, d := range []*prometheus.Desc{m.running, m.waiting, m.overdue, m.age} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.total.Collect(ch)
	now := m.clock.Now()
	f := m.agenda.figures(now)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(m.running, float64(f.running))
	for _, obstacle := range []resync.Obstacle{resync.ObstacleThreshold, resync.ObstacleEnvironmentThreshold} {
		f.waiting[obstacle] += 0 // always told, so that their absence is none
	}
	for obstacle, n := range f.waiting {
		label := string(obstacle)
		if obstacle == resync.ObstacleNone {
			label = "Pace"
		}
		gauge(m.waiting, float64(n), label)
	}
	gauge(m.overdue, f.overdue.Seconds())
	if !f.oldest.IsZero() {
		gauge(m.age, max(0, now.Sub(f.oldest)).Seconds())
	}
}

// agendaFigures is what an agenda says as a whole.
type agendaFigures struct {
	running int
	waiting map[resync.Obstacle]int
	overdue time.Duration
	oldest  time.Time
}

func (a *Agenda) figures(now time.Time) agendaFigures {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := agendaFigures{waiting: map[resync.Obstacle]int{}}
	for _, e := range a.entries {
		if last := e.Timing.LastCheck; e.Timing.Period > 0 && !last.IsZero() && (f.oldest.IsZero() || last.Before(f.oldest)) {
			f.oldest = last
		}
		switch {
		case e.running:
			f.running++
		case e.due.By(now):
			f.waiting[e.obstacle]++
			if roomIsAll(e.obstacle) {
				f.overdue = max(f.overdue, now.Sub(e.due.At))
			}
		}
	}
	return f
}

// roomIsAll says that a check waits for nothing but the others.
func roomIsAll(o resync.Obstacle) bool {
	switch o {
	case resync.ObstacleNone, resync.ObstacleThreshold, resync.ObstacleEnvironmentThreshold:
		return true
	default:
		return false
	}
}
