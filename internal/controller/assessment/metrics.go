// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// Metrics of assessments.
type Metrics struct {
	ended      *prometheus.CounterVec
	overdue    prometheus.Histogram
	components *prometheus.CounterVec
	scores     *prometheus.HistogramVec

	now func() time.Time
	mu  sync.Mutex
	// inFlight has the deadlines; zero for an assessment without one.
	inFlight map[types.NamespacedName]time.Time
}

// NewMetrics registers them. now is the API server's time.
func NewMetrics(registry prometheus.Registerer, now func() time.Time) (*Metrics, error) {
	m := &Metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_effectiveness_assessments_total",
			Help: "Effectiveness assessments that have ended, by reason and verdict.",
		}, []string{"reason", "verdict"}),
		overdue: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "plumbline_effectiveness_deadline_to_verdict_seconds",
			Help:    "Time from the deadline of an effectiveness assessment to its verdict, of those without a verdict before the deadline.",
			Buckets: []float64{.1, .5, 1, 5, 15, 60, 300, 1800},
		}),
		components: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "plumbline_effectiveness_components_total",
			Help: "Components of effectiveness assessments that have ended, by their result: assessed, not_configured or not_answered.",
		}, []string{"component", "state"}),
		scores: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "plumbline_effectiveness_component_score",
			Help:    "Scores of the components of effectiveness assessments that have ended, from 0 to 1.",
			Buckets: []float64{0, .25, .5, .75, .9, 1},
		}, []string{"component"}),
		now: now, inFlight: map[types.NamespacedName]time.Time{},
	}
	running := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_effectiveness_in_flight",
		Help: "Effectiveness assessments that have not ended.",
	}, m.count)
	overdue := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plumbline_effectiveness_overdue_seconds",
		Help: "Time since the deadline of the effectiveness assessment that is overdue the longest; 0 without one.",
	}, m.longestOverdue)
	for _, c := range []prometheus.Collector{m.ended, m.overdue, m.components, m.scores, running, overdue} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of assessments: %w", err)
		}
	}
	for _, reason := range reasons {
		for _, verdict := range verdicts {
			m.ended.WithLabelValues(labelsOf(reason, verdict)...) // the first end is an increase
		}
	}
	return m, nil
}

// reasons and verdicts are all that an assessment can end with.
var (
	reasons = []v1alpha1.AssessmentReason{
		v1alpha1.AssessedFull, v1alpha1.AssessedPartial, v1alpha1.AssessedExpired, v1alpha1.AssessedNoExecution,
		v1alpha1.AssessedMetricsTimedOut, v1alpha1.AssessedSpecDrift, v1alpha1.AssessedAlertDecayTimeout,
	}
	verdicts = []v1alpha1.EffectVerdict{v1alpha1.VerdictEffective, v1alpha1.VerdictIneffective, v1alpha1.VerdictInconclusive, v1alpha1.VerdictInvalidated}
)

func labelsOf(reason v1alpha1.AssessmentReason, verdict v1alpha1.EffectVerdict) []string {
	return []string{telemetry.SpellWord(string(reason)), telemetry.SpellWord(string(verdict))}
}

func (m *Metrics) count() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return float64(len(m.inFlight))
}

func (m *Metrics) longestOverdue() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest := time.Duration(0)
	for _, deadline := range m.inFlight {
		if !deadline.IsZero() {
			longest = max(longest, m.now().Sub(deadline))
		}
	}
	return longest.Seconds()
}

// begin counts an assessment that has not ended.
func (m *Metrics) begin(a *v1alpha1.EffectivenessAssessment) {
	deadline := time.Time{}
	if stored := effect.ReadStored(a); stored.Executed && !stored.WrittenTime.IsZero() {
		deadline = stored.Schedule(stored.WrittenTime).Deadline
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}] = deadline
}

func (m *Metrics) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.inFlight, key)
}

// end counts an assessment whose end is stored.
func (m *Metrics) end(s *subject) {
	m.forget(types.NamespacedName{Namespace: s.next.Namespace, Name: s.next.Name})
	status := &s.next.Status
	m.ended.WithLabelValues(labelsOf(status.Reason, status.Verdict)...).Inc()
	for i := range status.Components {
		c := &status.Components[i]
		name := telemetry.SpellWord(string(c.Name))
		m.components.WithLabelValues(name, telemetry.SpellWord(string(c.State))).Inc()
		if c.State == v1alpha1.ComponentAssessed && c.Score != nil {
			m.scores.WithLabelValues(name).Observe(float64(*c.Score) / effect.Best)
		}
	}
	if status.Schedule == nil || status.CompletionTime == nil {
		return
	}
	if late := status.CompletionTime.Sub(status.Schedule.DeadlineTime.Time); late >= 0 {
		m.overdue.Observe(late.Seconds())
	}
}
